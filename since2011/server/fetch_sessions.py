"""Fetch sessions (KIP-227): a reader of many partitions names them once, and then only what has changed.

A session belongs to the connection it was made on and ends with it: clients begin a new one when a connection breaks,
and none can be used by somebody else. An answer within a session names the partitions that have records, an error, a
place where histories part, or another high watermark or log start than the reader was told last.

See docs/modern-port.md (fetch sessions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Protocol
from uuid import UUID

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

FULL, FULL_WITHOUT = 0, -1
"""Epochs that are none: begin a session; be done with the session."""
LAST_EPOCH = (1 << 31) - 1
MOST_PARTITIONS = 50_000
"""Of all sessions together, a kilobyte each. Who asks for more is served without a session."""

Key = tuple[str | UUID, int]


class Reader(Protocol):
    """A connection, as far as this is concerned."""

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` when it is closed."""


class FetchSession:
    """What one reader wants, in the order in which it is served, and what it was told last. Thread: reactor."""

    def __init__(self, number: int, by_id: bool) -> None:
        self.number, self.by_id = number, by_id
        self.epoch = 1
        """Of the next request."""
        self.wanted: dict[Key, tuple[Struct, Struct]] = {}
        """The topic as it was named, and the partition's row, as they were asked for last."""
        self.made: dict[Key, object] = {}
        """What the handler has made of a row, kept until the row changes."""
        self.stamp: object = None
        """Under what circumstances it was made."""
        self.is_busy = False
        self._told: dict[Key, tuple[int, int]] = {}

    def change(self, body: Struct) -> None:
        """Take over what a request adds, changes and forgets."""
        for topic in body.forgotten:
            for index in topic.partitions:
                self._forget((self._name(topic), index))
        for topic in body.topics:
            for row in topic.partitions:
                key = (self._name(topic), row.index)
                self.wanted[key] = topic, row
                self.made.pop(key, None)

    def _name(self, topic: Struct) -> str | UUID:
        name: str | UUID = topic.topic_id if self.by_id else topic.name
        return name

    def _forget(self, key: Key) -> None:
        for of in (self.wanted, self.made, self._told):
            of.pop(key, None)

    def is_news(self, key: Key, high_watermark: int, log_start: int) -> bool:
        """Whether the reader does not know these yet; from now on it does."""
        told = high_watermark, log_start
        if self._told.get(key) == told:
            return False
        self._told[key] = told
        return True

    def failed(self, key: Key) -> None:
        """The reader was told an error: it is to hear when that is over."""
        self._told.pop(key, None)

    def served(self, key: Key) -> None:
        """It had records: others come first next time."""
        self.wanted[key] = self.wanted.pop(key)


class FetchSessions:
    """All sessions of a broker. Thread: reactor."""

    def __init__(self, slots: int, random: Random, most_partitions: int = MOST_PARTITIONS) -> None:
        self._slots, self._random, self._most = slots, random, most_partitions
        self._sessions: dict[Reader, FetchSession] = {}
        self._readers: set[Reader] = set()
        """Those whose end we are told of."""

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    def of(self, reader: Reader, body: Struct, by_id: bool) -> FetchSession | None:
        """The session this request belongs to, the request taken over; None without one.

        Raises Refused where the reader has to begin anew: 70 for a session that there is not, 71 for a request that
        is not the next of its session, 106 where topics are named in another way than before.
        """
        if body.session_epoch in (FULL, FULL_WITHOUT):
            self._sessions.pop(reader, None)
            return None if body.session_epoch == FULL_WITHOUT else self._begin(reader, body, by_id)
        found = self._sessions.get(reader)
        if found is None or found.number != body.session_id:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no session {body.session_id} here")
        if found.by_id is not by_id:
            raise Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session names topics always in one way")
        if found.epoch != body.session_epoch or found.is_busy:
            raise Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"the next epoch of the session is {found.epoch}")
        found.change(body)
        if not found.wanted:
            del self._sessions[reader]
            return None
        if self._n_partitions() > self._most:
            del self._sessions[reader]
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the sessions have too many partitions")
        found.epoch = 1 if found.epoch == LAST_EPOCH else found.epoch + 1
        return found

    def _begin(self, reader: Reader, body: Struct, by_id: bool) -> FetchSession | None:
        n_new = sum(len(topic.partitions) for topic in body.topics)
        if not n_new or len(self._sessions) >= self._slots or self._n_partitions() + n_new > self._most:
            return None
        session = FetchSession(self._random.randrange(1, 1 << 31), by_id)
        session.change(body)
        self._sessions[reader] = session
        if reader not in self._readers:
            self._readers.add(reader)
            reader.when_lost(lambda: self._lost(reader))
        return session

    def _lost(self, reader: Reader) -> None:
        self._readers.discard(reader)
        self._sessions.pop(reader, None)

    def _n_partitions(self) -> int:
        return sum(len(session.wanted) for session in self._sessions.values())
