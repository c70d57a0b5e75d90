"""``kafka2011 --version``: which release, and which walker of message sets (issue 23, point 1)."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import pytest

from kafka2011 import __version__
from kafka2011.wire import walk


@pytest.mark.parametrize("pure", ["", "0", "1"])
def test_the_version_names_the_walker(pure: str) -> None:
    """The compiled walker is used where it was built, unless the environment asks for the pure one."""
    code = "from kafka2011.cli.main import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        env=os.environ | {"KAFKA2011_PURE": pure},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    walker = "pure Python" if pure == "1" or walk.compiled is None else "compiled"
    assert told.strip().endswith(f"{__version__} ({walker})")


def test_the_variable_is_no_setting() -> None:
    """A broker does not take KAFKA2011_PURE for a setting it does not know."""
    told = subprocess.run(
        [sys.executable, "-c", "from kafka2011.cli.main import main; main()", "config", "show"],
        env=os.environ | {"KAFKA2011_PURE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(walk.compiled is None, reason="the extension kafka2011.wire._walk was not compiled")
def test_a_build_of_an_older_file_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update without a new install the pure walker is used, not one with other arguments."""
    monkeypatch.delenv("KAFKA2011_PURE", raising=False)
    assert runpy.run_module("kafka2011.wire.walk")["is_compiled"]
    monkeypatch.setattr(walk.compiled, "VERSION", 0)
    assert not runpy.run_module("kafka2011.wire.walk")["is_compiled"]
