"""The project's own code as pages: highlighted, every line with an address, every import a link, and a way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token

PACKAGES = ("kafka2011", "zk_registry", "since2011", "consumers", "hadoop_etl", "classroom")
_MODULE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*")
_PANE = re.compile(r"[a-z]*")


def source_page(module: str, back: str) -> str | None:
    """The page of one of our modules; None for anything else. ``back``: the pane one came from."""
    text = source_of(module)
    if text is None:
        return None
    lines = "".join(
        f'<span class="line" id="L{number}"><a class="number" href="#L{number}">{number}</a>{line}</span>'
        for number, line in enumerate(_highlighted(text), 1)
    )
    return page(module, f'<pre class="source" tabindex="0" aria-label="the code of {module}">{lines}</pre>', back)


def page(title: str, body: str, back: str = "") -> str:
    """A page beside the main one: its title, the way back, its body."""
    pane = back if _PANE.fullmatch(back) else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · kafka2011</title>"
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/style.css">'
        '<link rel="stylesheet" href="/static/source.css"></head><body class="beside">'
        f'<header><h1>{escape(title)}</h1><nav aria-label="Way back"><a href="/#{pane}">← back to the page</a></nav>'
        f'</header><main id="pane">{body}</main></body></html>'
    )


@cache
def source_of(module: str) -> str | None:
    """The text of one of our own modules, without importing it: Spark and its kin would make the page slow to start."""
    path = _path(module)
    return None if path is None else path.read_text()


def _path(module: str) -> Path | None:
    top, *parts = module.split(".")
    if top not in PACKAGES or not _MODULE.fullmatch(module):
        return None
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        return None
    place = Path(spec.submodule_search_locations[0], *parts)
    found = (place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in found if path.is_file()), None)


def _highlighted(text: str) -> Iterator[str]:
    """The lines as HTML; a token that spans lines is closed and opened again at each break."""
    line: list[str] = []
    for kind, value in _tokens(text):
        pieces = value.split("\n")
        for number, piece in enumerate(pieces):
            if number:
                yield "".join(line)
                line = []
            if piece:
                line.append(_token(kind, piece))
    if line:
        yield "".join(line)


def _tokens(text: str) -> Iterator[tuple[Any, str]]:
    """The lexer's tokens; the parts of a module's name, which it takes one by one, in one piece."""
    found = PythonLexer(stripnl=False, ensurenl=False).get_tokens(text)
    for is_name, together in groupby(found, key=lambda token: token[0] in Token.Name.Namespace):
        if is_name:
            yield Token.Name.Namespace, "".join(value for _, value in together)
        else:
            yield from together


def _token(kind: Any, piece: str) -> str:
    if kind in Token.Name.Namespace and _path(piece) is not None:
        return f'<a href="/source/{piece}">{escape(piece)}</a>'
    name = STANDARD_TYPES.get(kind, "")
    return f'<span class="{name}">{escape(piece)}</span>' if name else escape(piece)
