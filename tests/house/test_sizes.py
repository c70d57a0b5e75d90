"""Limits the project sets itself, kept by tests."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kafka2011", "zk_registry", "since2011", "consumers", "hadoop_etl", "classroom")
MAX_LINES = 350


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: cannot tell which files belong to the project")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).exists()]


def test_a_module_is_one_noun() -> None:
    """No module grows beyond what can be read in one sitting (house rule)."""
    modules = [path for package in (*PACKAGES, "benchmarks", "docs") for path in tracked(f"{package}/**.py")]
    sizes = {path: len(path.read_text().splitlines()) for path in modules}
    too_long = {str(p.relative_to(ROOT)): n for p, n in sizes.items() if n > MAX_LINES}

    assert too_long == {}


def test_modules_say_what_they_are() -> None:
    """Every module of the product opens with a docstring (house rule)."""
    silent = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in tracked(f"{package}/**.py")
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]

    assert silent == []


def test_tests_state_a_promise() -> None:
    """Every test's docstring states the promise it checks (house rule)."""
    silent = []
    for path in tracked("tests/**.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_test = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
            if is_test and not ast.get_docstring(node):
                silent.append(f"{path.relative_to(ROOT)}::{node.name}")

    assert silent == []


def test_packages_are_listed() -> None:
    """Every package directory is in setup.cfg, so that the wheel holds what the checkout holds."""
    import configparser

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    present = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in tracked(f"{package}/**__init__.py")
        if path.name == "__init__.py"
    }

    assert present == listed


def test_links_in_the_docs_lead_somewhere() -> None:
    """A relative link in README or docs/ names a file that exists."""
    import re

    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in tracked("*.md")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]

    assert broken == []
