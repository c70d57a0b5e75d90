"""A believable activity stream: page views, searches and logins of a social network, as Avro events.

Paper: §1 ("user activity events corresponding to logins, page-views, clicks, ..."), §4 (Avro with a schema id).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def _record(name: str, doc: str, *fields: tuple[str, Any, str]) -> Schema:
    head = [("timestamp", "long", "when it happened, ms since 1970"), ("member", "long", "who did it")]
    return {
        "type": "record",
        "name": name,
        "namespace": "kafka2011.demo",
        "doc": doc,
        "fields": [{"name": n, "type": t, "doc": d} for n, t, d in (*head, *fields)],
    }


SCHEMAS: dict[str, Schema] = {
    "page_views": _record(
        "PageView",
        "somebody looked at a page",
        ("page", "string", "path of the page"),
        ("referrer", ["null", "string"], "the page before, if any"),
        ("duration_ms", "int", "how long it took to serve"),
    ),
    "searches": _record(
        "Search",
        "somebody searched",
        ("query", "string", "what was typed"),
        ("results", "int", "how many were found"),
    ),
    "logins": _record(
        "Login",
        "somebody logged in, or tried to",
        ("device", "string", "phone, tablet or desktop"),
        ("success", "boolean", "whether it worked"),
    ),
}

_PAGES = ("/home", "/profile", "/jobs", "/groups", "/inbox", "/people", "/company/42", "/news", "/settings")
_WORDS = ("kafka", "distributed", "systems", "engineer", "log", "stream", "data", "infrastructure", "hadoop", "java")
_DEVICES = ("desktop", "desktop", "phone", "tablet")


class Members:
    """People who click: each stays for a while and wanders from page to page. Seeded, so a run can be repeated."""

    def __init__(self, seed: int, n_members: int = 500) -> None:
        self._random = random.Random(seed)
        self._last_page: dict[int, str] = {}
        self._n_members = n_members

    def events(self) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Endless (topic, member, fields without timestamp): many page views, some searches, a few logins."""
        choose = self._random
        while True:
            member = choose.randrange(1, self._n_members + 1)
            kind = choose.random()
            if member not in self._last_page or kind < 0.04:
                self._last_page[member] = "/home"
                login = {"device": choose.choice(_DEVICES), "success": choose.random() > 0.03}
                yield "logins", member, login
            elif kind < 0.2:
                words = choose.sample(_WORDS, choose.randint(1, 3))
                yield "searches", member, {"query": " ".join(words), "results": int(choose.expovariate(0.02))}
            else:
                page, before = choose.choice(_PAGES), self._last_page[member]
                self._last_page[member] = page
                duration_ms = int(choose.lognormvariate(3.5, 0.8))
                yield "page_views", member, {"page": page, "referrer": before, "duration_ms": duration_ms}
