"""How large the capability is (issue 27, point 5): docs/since-2011.md says fewer than 1,500 lines of code."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def _lines_of_code(text: str) -> int:
    """Lines with code on them: no blank lines, comments and docstrings."""
    prose = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in LAYOUT]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - prose)


def test_standbys_are_fewer_than_1500_lines_of_code() -> None:
    """The package, and the two modules of the seam in the paper's broker."""
    seam = [ROOT / "kafka2011" / "broker" / name for name in ("requests.py", "visibility.py")]
    files = [*(ROOT / "since2011" / "standby").glob("*.py"), *seam]
    total = sum(_lines_of_code(path.read_text()) for path in files)
    assert 500 < total < 1_500
    assert "fewer than 1,500 lines of code" in (ROOT / "docs" / "since-2011.md").read_text()
