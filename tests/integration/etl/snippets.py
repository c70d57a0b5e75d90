"""The commands and snippets of docs/etl.md, as the tests run them: what is written is what was tried."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "etl.md"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def block(mark: str) -> str:
    """The one fenced block of the page that contains ``mark``."""
    found = [text for _, text in _FENCED.findall(PAGE.read_text()) if mark in text]
    assert len(found) == 1, f"docs/etl.md has {len(found)} blocks with {mark!r}"
    return str(found[0])


def command(beginning: str, mark: str) -> list[str]:
    """The words of the one command that begins so, in the block that contains ``mark``."""
    lines = block(mark).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines if line.startswith(beginning)]
    assert len(found) == 1, f"docs/etl.md has {len(found)} lines that begin with {beginning!r}"
    return found[0]


def with_options(words: list[str], **values: str) -> list[str]:
    """The same command with other values: ``master="spark://…"`` is for ``--master``, ``w="…"`` for ``-w``."""
    changed = list(words)
    for name, value in values.items():
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        changed[changed.index(option) + 1] = value
    return changed
