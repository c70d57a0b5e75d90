"""The sentences of the paper that the page shows, numbered and quoted briefly, each with the code that does it.

What the panes refer to comes first; then the sentences on trial (``kafka2011 claims``), by section.
"""

from __future__ import annotations

from functools import cache
from html import escape

from classroom.claims.claim import Claim
from classroom.claims.runs import trials
from classroom.observatory import paper_links
from classroom.observatory.source_pages import page, source_of


def paper_page(back: str) -> str:
    """The page; each sentence that a pane refers to has the anchor of that reference."""
    return page("What the paper says", _references() + _claims(), back)


def _references() -> str:
    resolved = paper_links.resolve()
    rows = "".join(
        f'<li id="{key}"><p><b>{escape(link.section)}</b> <q>{escape(link.quote)}</q></p>'
        f"<p>{escape(link.says)} · code {_source(resolved[key]['module'], resolved[key]['line'])}</p></li>"
        for key, link in paper_links.LINKS.items()
        if key in resolved
    )
    return f'<h2>What the panes show</h2><ol class="sentences">{rows}</ol>'


@cache
def _claims() -> str:
    rows = "".join(_claim(trial.CLAIM) for trial in sorted(trials(), key=lambda found: found.CLAIM.number))
    return f'<h2>On trial: kafka2011 claims</h2><ol class="sentences">{rows}</ol>'


def _claim(claim: Claim) -> str:
    modules = [path.removesuffix(".py").replace("/", ".") for path in claim.code]
    code = ", ".join(_source(module, 1) for module in modules if source_of(module) is not None)
    return (
        f'<li id="{claim.number}"><p><b>§{escape(claim.section)}</b> <q>{escape(claim.sentence)}</q></p>'
        f"<p>{escape(claim.number)}, {escape(claim.title)} · code {code or 'none of its own'}</p></li>"
    )


def _source(module: str, line: int) -> str:
    return f'<a href="/source/{module}#L{line}">{module}:{line}</a>'
