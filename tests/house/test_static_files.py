"""The page's own files are written for people. Issue 22 B9."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.test_sizes import ROOT, tracked

WIDEST = 120
_QUOTED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(?<=[(!=])/(?:\\.|[^/\\\n])+/""",
    re.DOTALL,
)
"""Comments, strings, templates and regular expressions: what stands in them is no statement."""
_FOR = re.compile(r"\bfor \([^;]*;[^;]*;[^;]*\)")


def packed(text: str) -> list[int]:
    """The numbers of lines with more than one statement or declaration, or with a statement inside a block."""
    bare = _FOR.sub("for", _QUOTED.sub(_left, text))
    lines = enumerate(bare.splitlines(), 1)
    return [number for number, line in lines if re.search(r";\s*\S", line) or re.search(r"\{[^}]*;", line)]


def _left(quoted: re.Match[str]) -> str:
    """Nothing of a comment, a letter for anything else; the line breaks stay, so that the numbers of lines do."""
    return ("" if quoted[0].startswith(("//", "/*")) else "Q") + "\n" * quoted[0].count("\n")


def static_files() -> list[Path]:
    kinds = ("js", "css", "html")
    return [path for kind in kinds for path in tracked(f"classroom/observatory/static/**.{kind}")]


def test_no_line_is_too_wide() -> None:
    """Issue 22 B9: a line of the page's files fits beside another file, as a line of Python does."""
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in static_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDEST
    ]

    assert static_files() and wide == []


def test_one_statement_a_line() -> None:
    """Issue 22 B9: scripts and style sheets have one statement or declaration a line; nothing is packed."""
    sources = [path for path in static_files() if path.suffix != ".html"]

    assert [f"{path.relative_to(ROOT)}:{n}" for path in sources for n in packed(path.read_text())] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("let a = 1; let b = 2;", [1]),
        ("if (a) { b(); }", [1]),
        ("p { margin: 0; color: red; }", [1]),
        ("one();\ntwo(); three();", [2]),
        ('say("a; b");\nsay(`c; d`); // e; f', []),
        ("for (let i = 0; i < 3; i += 1) {\n  go(i);\n}", []),
        ("import { a, b } from 'c';\nconst { d } = e;", []),
    ],
)
def test_what_is_packed(text: str, lines: list[int]) -> None:
    """The rule itself: statements count, what is quoted does not."""
    assert packed(text) == lines
