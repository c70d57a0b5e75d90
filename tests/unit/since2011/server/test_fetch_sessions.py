"""Fetch sessions: who may use one, what is remembered, what it may cost (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from since2011.server.fetch_sessions import FULL, FULL_WITHOUT, LAST_EPOCH, FetchSession, FetchSessions
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused


class Reader:
    """A connection that can be closed."""

    def __init__(self) -> None:
        self.told: list[Callable[[], None]] = []

    def when_lost(self, tell: Callable[[], None]) -> None:
        self.told.append(tell)

    def close(self) -> None:
        for tell in self.told:
            tell()


def body(epoch: int, *indexes: int, number: int = 0, forget: tuple[int, ...] = ()) -> Struct:
    def topic(partitions: list[object]) -> list[Struct]:
        return [Struct(name="t", topic_id=None, partitions=partitions)] if partitions else []

    rows: list[object] = [Struct(index=index) for index in indexes]
    return Struct(session_id=number, session_epoch=epoch, topics=topic(rows), forgotten=topic(list(forget)))


def begun(sessions: FetchSessions, reader: Reader, *indexes: int) -> FetchSession:
    session = sessions.of(reader, body(FULL, *indexes), by_id=False)
    assert session is not None
    return session


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(2, Random(1), most_partitions=10)


def test_a_session_remembers_what_was_asked_for(sessions: FetchSessions) -> None:
    """Added, changed and forgotten partitions; whoever was served goes to the end (KIP-227)."""
    reader = Reader()
    session = begun(sessions, reader, 0, 1, 2)
    session.made |= dict.fromkeys(session.wanted, "made")
    session.served(("t", 0))
    again = sessions.of(reader, body(1, 3, 1, number=session.number, forget=(2,)), by_id=False)
    assert again is session
    assert [index for _, index in session.wanted] == [1, 0, 3]
    assert [index for _, index in session.made] == [0], "what is made of a changed row is made anew"
    assert sessions.of(reader, body(2, number=session.number, forget=(0, 1, 3)), by_id=False) is None
    assert len(sessions) == 0, "one without partitions is closed"


@pytest.mark.parametrize(
    ("number", "epoch", "by_id", "error"),
    [
        (1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_who_does_not_go_on_begins_anew(
    sessions: FetchSessions, number: int, epoch: int, by_id: bool, error: ErrorCode
) -> None:
    """70, 71 and 106, which make a client fetch in full (sheet §6.4)."""
    reader = Reader()
    session = begun(sessions, reader, 0)
    with pytest.raises(Refused) as refused:
        sessions.of(reader, body(epoch, number=session.number + number), by_id=by_id)
    assert refused.value.error == error


def test_one_request_of_a_session_at_a_time(sessions: FetchSessions) -> None:
    """The next one, sent before the answer to this one, would be answered with what this one holds: 71."""
    reader = Reader()
    session = begun(sessions, reader, 0)
    session.is_busy = True
    with pytest.raises(Refused) as refused:
        sessions.of(reader, body(1, number=session.number), by_id=False)
    assert refused.value.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_epochs_begin_again_after_the_last(sessions: FetchSessions) -> None:
    """After 2³¹-1 comes 1: 0 would be a new session (sheet §6.4)."""
    reader = Reader()
    session = begun(sessions, reader, 0)
    session.epoch = LAST_EPOCH
    assert sessions.of(reader, body(LAST_EPOCH, number=session.number), by_id=False) is session
    assert sessions.of(reader, body(1, number=session.number), by_id=False) is session


def test_a_session_ends_with_its_connection(sessions: FetchSessions) -> None:
    """Nobody else can use it, and nothing of it stays; a new one takes the place of the old."""
    reader, other = Reader(), Reader()
    session = begun(sessions, reader, 0)
    with pytest.raises(Refused):
        sessions.of(other, body(1, number=session.number), by_id=False)
    again = begun(sessions, reader, 0, 1)
    assert again is not session
    assert list(sessions) == [again]
    reader.close()
    assert list(sessions) == []
    begun(sessions, reader, 0)
    assert sessions.of(reader, body(FULL_WITHOUT, 0), by_id=False) is None
    assert list(sessions) == []


def test_sessions_are_bounded(sessions: FetchSessions) -> None:
    """Too many sessions, too many partitions: full fetches for who comes last, 70 for who grows too much."""
    readers = [Reader() for _ in range(3)]
    first = begun(sessions, readers[0], *range(4))
    assert sessions.of(readers[1], body(FULL, *range(7)), by_id=False) is None
    begun(sessions, readers[1], *range(6))
    assert sessions.of(readers[2], body(FULL, 0), by_id=False) is None
    with pytest.raises(Refused) as refused:
        sessions.of(readers[0], body(1, 4, number=first.number), by_id=False)
    assert refused.value.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1


def test_what_is_news(sessions: FetchSessions) -> None:
    """A partition is named again when watermark or log start have changed, and when an error is over."""
    session, key = begun(sessions, Reader(), 0), ("t", 0)
    told = [session.is_news(key, *ends) for ends in ((5, 0), (5, 0), (6, 0), (6, 2), (6, 2))]
    assert told == [True, False, True, True, False]
    session.failed(key)
    assert session.is_news(key, 6, 2)
