"""Idempotent producers against a real broker that dies. See docs/modern-port.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.test_bridge import records_of
from tests.integration.since2011.wire_client import WireClient, produce_body
from tests.unit.since2011.server.test_batches import built


def new_producer(client: WireClient) -> tuple[int, int]:
    """(producer id, epoch)."""
    answer = client.ask(ApiKey.INIT_PRODUCER_ID, 1, Struct(transactional_id=None, txn_timeout_ms=0))
    assert answer.error == 0
    return answer.producer_id, answer.epoch


def test_a_retry_is_answered_and_not_written(client: WireClient, other: WireClient) -> None:
    """The same batch again, from any connection, gets the first answer; a gap and an old epoch are refused (§14)."""
    pid, epoch = new_producer(client)
    assert (pid, epoch) != new_producer(other)
    first = client.produce("once", [b"a", b"b"], producer=(pid, epoch, 0))
    again = other.produce("once", [b"a", b"b"], producer=(pid, epoch, 0))
    gap = client.produce("once", [b"d"], producer=(pid, epoch, 3))
    following = client.produce("once", [b"c"], producer=(pid, epoch, 2))
    bumped = client.produce("once", [b"e"], producer=(pid, epoch + 1, 0))
    zombie = client.produce("once", [b"z"], producer=(pid, epoch, 3))

    assert (0, first.base_offset) == (again.error, again.base_offset)
    assert gap.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (following.error, bumped.error) == (0, 0)
    assert zombie.error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [value for _, value in records_of(client.fetch("once", 0))] == [b"a", b"b", b"c", b"e"]


def test_a_topic_of_2011_holds_no_transactions(client: WireClient) -> None:
    """Adding a 2011 partition to a transaction is refused for good, partition by partition (docs/modern-port.md)."""
    client.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key="t", key_type=1))
    assert not client.produce("old", [b"v"]).error
    made = client.ask(ApiKey.INIT_PRODUCER_ID, 1, Struct(transactional_id="t", txn_timeout_ms=1000))
    topics = [Struct(name="old", partitions=[0])]
    body = Struct(transactional_id="t", producer_id=made.producer_id, epoch=made.epoch, topics=topics)
    answer = client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 2, body)

    assert answer.topics[0].partitions[0].error == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("place", ["producers.noted", "producers.appended"])
def test_a_broker_killed_around_the_append_writes_once(tmp_path: Path, place: str) -> None:
    """kill -9 after the note, or after the append: the retry leaves the batch in the log exactly once (§14)."""
    with BrokerProcess(tmp_path / "data", OPTIONS, environ={"KAFKA2011_FAILPOINTS": f"{place}=kill@2"}) as broker:
        with WireClient(broker.modern_port or 0) as client:
            pid, epoch = new_producer(client)
            assert client.produce("t", [b"first"], producer=(pid, epoch, 0)).error == 0
            client.send(ApiKey.PRODUCE, 7, produce_body("t", built([b"second"], producer=(pid, epoch, 1))))
            assert client.is_closed()
        broker.kill()
        broker.environ.clear()
        broker.restart()
        with WireClient(broker.modern_port or 0) as client:
            # A plain producer is quicker: the bytes after the crash are not the lost batch's.
            assert client.produce("t", [b"plain!"]).error == 0
            retried = client.produce("t", [b"second"], producer=(pid, epoch, 1))
            older = client.produce("t", [b"first"], producer=(pid, epoch, 0))
            following = client.produce("t", [b"third"], producer=(pid, epoch, 2))
            values = [value for _, value in records_of(client.fetch("t", 0))]

    assert (retried.error, older.error, following.error) == (0, 0, 0)
    noted = [b"first", b"plain!", b"second", b"third"]
    appended = [b"first", b"second", b"plain!", b"third"]
    assert values == (noted if place == "producers.noted" else appended)
