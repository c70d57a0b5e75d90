"""What ``import kafka2011`` and ``import consumers`` offer is seen by people, editors and the docs alike."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import consumers
import kafka2011

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("package", [kafka2011, consumers])
def test_public_names_are_listed_and_there(package: object) -> None:
    """Tab completion shows every public name, and each can be imported (issue 22 A2)."""
    names = package.__all__  # type: ignore[attr-defined]

    assert set(names) <= set(dir(package))
    assert [name for name in names if not hasattr(package, name)] == []


@pytest.mark.parametrize("package", ["kafka2011", "consumers"])
def test_listing_names_imports_nothing(package: str) -> None:
    """Names are listed without the cost of importing what is behind them: commands start quickly."""
    program = f"import sys, {package}; dir({package}); sys.exit('kazoo' in sys.modules or 'twisted' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_what_the_docs_import_is_public() -> None:
    """A name that README or docs/ import from a package itself is one of its public names (issue 22 A2)."""
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    imported = {
        (package, name)
        for page in pages
        for package, names in re.findall(r"^\s*from (kafka2011|consumers) import ([\w, ]+)$", page.read_text(), re.M)
        for name in names.split(", ")
    }
    public = {("kafka2011", name) for name in kafka2011.__all__} | {("consumers", name) for name in consumers.__all__}

    assert imported - public == set()
    assert imported
