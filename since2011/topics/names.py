"""Which names a topic may have, as a real Kafka has it.

Metrics write a dot as an underscore, so ``a.b`` and ``a_b`` would be one: no topic may be made beside such a twin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from since2011.topics.errors import InvalidTopic

MAX_LENGTH = 249
"""A directory is named after the topic and a partition, and may have 255 characters."""
_LEGAL = re.compile(r"[A-Za-z0-9._-]+\Z")


def check_name(name: str) -> None:
    """Raise InvalidTopic if no topic may be called so."""
    if not name:
        raise InvalidTopic("a topic needs a name")
    if len(name) > MAX_LENGTH:
        raise InvalidTopic(f"a topic's name has at most {MAX_LENGTH} characters, this one {len(name)}: {name[:40]!r}…")
    if name in (".", ".."):
        raise InvalidTopic(f"no topic can be called {name!r}")
    if _LEGAL.match(name) is None:
        raise InvalidTopic(f"{name!r} is no name for a topic: letters, digits, '.', '_' and '-' are")


def check_collision(name: str, others: Iterable[str]) -> None:
    """Raise InvalidTopic if a topic that differs only in dots and underscores is there."""
    folded = name.replace(".", "_")
    if folded == name and "_" not in name:
        return
    twin = next((other for other in others if other != name and other.replace(".", "_") == folded), None)
    if twin is not None:
        raise InvalidTopic(f"{name} cannot be told from {twin}: dots and underscores are one in metrics; rename it")
