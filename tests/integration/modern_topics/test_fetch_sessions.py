"""Fetch sessions at the wire level: an answer names what has changed and nothing else (KIP-227)."""

from __future__ import annotations

import uuid

import pytest

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient
from tests.unit.since2011.server.test_batches import built

BATCH = built([b"x" * 1000])
N = 20


class Session:
    """A reader of ``N`` partitions of one topic, in version 12 by name or 13 by id."""

    def __init__(self, client: WireClient, name: str, topic_id: uuid.UUID, version: int) -> None:
        self._client, self._version = client, version
        self._topic = {"name": name, "topic_id": topic_id}
        self.number, self._epoch = 0, 0

    def ask(self, offsets: dict[int, int], *, forget: list[int] | None = None, max_bytes: int = 1 << 25) -> Struct:
        rows = [Struct(index=index, offset=offset, max_bytes=1 << 20) for index, offset in offsets.items()]
        answer = self._client.ask(
            ApiKey.FETCH,
            self._version,
            Struct(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=max_bytes,
                isolation=0,
                session_id=self.number,
                session_epoch=self._epoch,
                topics=[Struct(**self._topic, partitions=rows)] if rows else [],
                forgotten=[Struct(**self._topic, partitions=forget)] if forget else [],
                rack="",
            ),
        )
        self.number, self._epoch = answer.session_id, self._epoch + 1
        return answer

    def told(
        self, offsets: dict[int, int], *, forget: list[int] | None = None, max_bytes: int = 1 << 25
    ) -> list[Struct]:
        answer = self.ask(offsets, forget=forget, max_bytes=max_bytes)
        assert answer.error == ErrorCode.NONE
        return [row for topic in answer.topics for row in topic.partitions]


@pytest.fixture(params=[12, 13], ids=["by name", "by id"])
def session(request: pytest.FixtureRequest, broker: BrokerProcess, client: WireClient, topic: str) -> Session:
    with Admin(f"127.0.0.1:{broker.modern_port}") as admin:
        admin.create(topic, partitions=N)
        (row,) = admin.topics([topic])
    assert row.topic_id not in (None, NO_UUID)
    return Session(client, topic, row.topic_id, request.param)


def test_only_what_has_changed_is_told(session: Session, client: WireClient, topic: str) -> None:
    """Everything once; then records, and after them nothing until something happens (sheet §6.4)."""
    assert [row.index for row in session.told(dict.fromkeys(range(N), 0))] == list(range(N))
    assert session.number > 0
    assert session.told({}) == []
    produce(client, topic, BATCH, index=7)
    (row,) = session.told({})
    assert (row.index, row.high_watermark, len(row.records)) == (7, 1, len(BATCH))
    (row,) = session.told({})
    assert len(row.records) == len(BATCH), "until the reader says that it has them"
    assert session.told({7: 1}) == []


def test_a_partition_that_is_forgotten_is_not_told_of(session: Session, client: WireClient, topic: str) -> None:
    """Forgotten ones are away, those that come later are in (sheet §6.4)."""
    session.told({0: 0, 1: 0})
    produce(client, topic, BATCH, index=0)
    produce(client, topic, BATCH, index=2)
    assert [row.index for row in session.told({2: 0}, forget=[0])] == [2]


def test_who_was_served_waits_for_the_others(session: Session, client: WireClient, topic: str) -> None:
    """Where an answer has room for one partition, they take turns (KIP-227)."""
    for index in (0, 1, 2):
        produce(client, topic, BATCH, index=index)
    first = session.told(dict.fromkeys(range(3), 0), max_bytes=len(BATCH))
    served = [row.index for row in first if row.records]
    for _ in range(3):
        served += [row.index for row in session.told({}, max_bytes=len(BATCH)) if row.records]
    assert served == [0, 1, 2, 0]


def test_an_error_is_told_until_it_is_over(session: Session, client: WireClient, topic: str) -> None:
    """An offset that is not there: error 1 each time; put right, the partition is named once more (sheet §6.4)."""
    session.told({0: 0, 1: 0})
    errors = [[(row.index, row.error) for row in session.told(change)] for change in ({1: 5}, {}, {1: 0}, {})]
    wrong = [(1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert errors == [wrong, wrong, [(1, ErrorCode.NONE)], []]


def test_a_session_of_another_connection_is_refused(
    session: Session, broker: BrokerProcess, client: WireClient, topic: str
) -> None:
    """70: whoever guesses a number reads nothing of what somebody else asks for."""
    session.told({0: 0})
    with WireClient(broker.modern_port or 0) as stranger:
        session._client = stranger
        assert session.ask({}).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
