"""A fetch session: only what has changed since the last request is said again (KIP-227).

    none -> (id 0, epoch 0, everything) -> the broker gives an id -> (id, epoch 1, changes) -> (id, epoch 2, changes) …
    broken, or 70, 71: (old id, epoch 0, everything), which ends the old session and asks for a new one
    the broker gives id 0: it keeps no sessions; everything is said each time

The paper's answer: nothing is remembered, each fetch says all (§3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka2011.types import TopicPartition

_LAST_EPOCH = 2**31 - 1


class Row(NamedTuple):
    """What a fetch says of a partition."""

    offset: int
    last_epoch: int
    """Of the record before ``offset``; -1: not said."""
    leader_epoch: int
    max_bytes: int


class SessionRequest(NamedTuple):
    """The part of a request that the session decides."""

    session_id: int
    epoch: int
    rows: dict[TopicPartition, Row]
    forgotten: list[TopicPartition]


class FetchSession:
    """The session with one broker. One request at a time: ``request``, then ``answered`` or ``broken``."""

    def __init__(self) -> None:
        self._id = self._epoch = 0
        self._known: dict[TopicPartition, Row] = {}
        self._next: dict[TopicPartition, Row] = {}

    def request(self, wanted: Mapping[TopicPartition, Row]) -> SessionRequest:
        """What to say so that the broker serves exactly ``wanted``."""
        self._next = dict(wanted)
        if self._epoch == 0:
            return SessionRequest(self._id, 0, dict(wanted), [])
        changed = {partition: row for partition, row in wanted.items() if self._known.get(partition) != row}
        forgotten = [partition for partition in self._known if partition not in wanted]
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """The broker served the request; ``session_id`` as it says."""
        if self._epoch == 0:
            self._id = session_id
        self._epoch = (1 if self._epoch == _LAST_EPOCH else self._epoch + 1) if self._id else 0
        self._known = self._next if self._id else {}

    def broken(self) -> None:
        """The broker knows the session no more, or we do not know what it knows: begin another."""
        self._epoch, self._known = 0, {}
