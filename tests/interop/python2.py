"""A Python 2.7 and old packages for it: the clients of 2012 run on nothing newer.

Packages are installed once into ``.cache/`` of the checkout, which git ignores. Whatever is missing here skips the test
that needs it, by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "python2"
INSTALL_S = 120


@cache
def python2() -> Path | None:
    """A working Python 2.7: on the PATH, or among pyenv's versions."""
    on_path = shutil.which("python2.7")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in [*sorted(pyenv.glob("2.7.*/bin/python2.7")), *([Path(on_path)] if on_path else [])]:
        try:
            subprocess.run([candidate, "-c", "import ssl"], check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            continue
        return candidate
    return None


def python2_with(name: str, *requirements: str) -> tuple[Path, dict[str, str]]:
    """The interpreter, and an environment in which ``requirements`` can be imported; skip where there is none."""
    interpreter = python2()
    if interpreter is None:
        pytest.skip(f"{name}: no Python 2.7 on the PATH or under PYENV_ROOT")
    target = CACHE / "-".join(requirements).replace("==", "-")
    if not target.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Installed beside and renamed: an interrupted or simultaneous install leaves no half of it.
        draft = Path(tempfile.mkdtemp(dir=CACHE))
        command = [interpreter, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--target", draft]
        try:
            subprocess.run([*command, *requirements], check=True, capture_output=True, timeout=INSTALL_S)
            draft.rename(target)
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            if not target.is_dir():
                pytest.skip(f"{name}: {', '.join(requirements)} cannot be installed for Python 2.7 ({error!r:.300})")
    return interpreter, os.environ | {"PYTHONPATH": str(target), "PYTHONNOUSERSITE": "1"}
