"""Consumers: Algorithm 1 of §3.2, and beside it the group protocol that replaced it.

    from consumers import Consumer, SimpleConsumer, Groups
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consumers.admin import GroupHasMembers, Groups
    from consumers.algorithm1.consumer import Consumer
    from consumers.algorithm1.steps import Owned
    from consumers.dedupe import ByKey, ByOffset
    from consumers.simple import Checkpoint, SimpleConsumer
    from consumers.stream import Stream, StreamMessage

__all__ = [
    "ByKey",
    "ByOffset",
    "Checkpoint",
    "Consumer",
    "GroupHasMembers",
    "Groups",
    "Owned",
    "SimpleConsumer",
    "Stream",
    "StreamMessage",
]

_HOMES = {
    "Consumer": "consumers.algorithm1.consumer",
    "GroupHasMembers": "consumers.admin",
    "Groups": "consumers.admin",
    "Owned": "consumers.algorithm1.steps",
    "ByKey": "consumers.dedupe",
    "ByOffset": "consumers.dedupe",
    "Checkpoint": "consumers.simple",
    "SimpleConsumer": "consumers.simple",
    "Stream": "consumers.stream",
    "StreamMessage": "consumers.stream",
}


def __getattr__(name: str) -> object:
    """Import on first use: the modern listener lives in this package too and needs no ZooKeeper client."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'consumers' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names too, so that tab completion shows them before they are imported."""
    return sorted({*globals(), *__all__})
