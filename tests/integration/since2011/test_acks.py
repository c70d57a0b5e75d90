"""acks=all while the disk fails some, and while clients come and go. Issue 19 A1, A2; the whole matrix is beside it."""

from __future__ import annotations

import random
from pathlib import Path

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.test_idempotence import new_producer
from tests.integration.since2011.wire_client import WireClient, produce_body
from tests.unit.since2011.server.test_batches import built

SELDOM = OPTIONS | {
    "log.default.flush.interval.ms": 600_000, "log.flush.interval": 1_000_000, "num.partitions": 3,
}  # fmt: skip
"""Nothing is flushed but for an acknowledgement."""


def many(topic: str, value: bytes, *, timeout_ms: int = 60_000) -> Struct:
    """A request with a message for each of three partitions."""
    rows = [Struct(index=partition, records=built([value])) for partition in range(3)]
    return Struct(transactional_id=None, acks=-1, timeout_ms=timeout_ms, topics=[Struct(name=topic, partitions=rows)])


def errors(answer: Struct) -> list[int]:
    """The error of each partition."""
    return [int(row.error) for row in answer.topics[0].partitions]


def test_one_failed_sync_of_three_is_named_and_final_for_its_partition(tmp_path: Path) -> None:
    """A1: of a request's three partitions the failed one says 56, at once and ever after; the others are served."""
    failing = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=raise:EIO@5"}
    with BrokerProcess(tmp_path, SELDOM, environ=failing) as broker, WireClient(broker.modern_port or 0) as client:
        assert errors(client.ask(ApiKey.PRODUCE, 7, many("t", b"fine"))) == [0, 0, 0]
        second = errors(client.ask(ApiKey.PRODUCE, 7, many("t", b"one fails")))
        third = errors(client.ask(ApiKey.PRODUCE, 7, many("t", b"stays failed")))
        (failed,) = [partition for partition, error in enumerate(second) if error]
        appended = client.produce("t", [b"acks=1"], acks=1, partition=failed)
        assert client.produce("elsewhere", [b"fine"]).error == 0

    assert sorted(second) == [0, 0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert third == second
    assert appended.error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_sync_that_hangs_is_told_of_and_holds_up_nobody_else(tmp_path: Path) -> None:
    """A1: one of three syncs hangs: that partition says 7 when the request's own timeout is over, the others 0."""
    hanging = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=sleep:600@5"}
    with BrokerProcess(tmp_path, SELDOM, environ=hanging) as broker, WireClient(broker.modern_port or 0) as client:
        assert errors(client.ask(ApiKey.PRODUCE, 7, many("t", b"fine"))) == [0, 0, 0]
        second = errors(client.ask(ApiKey.PRODUCE, 7, many("t", b"one hangs", timeout_ms=300)))
        assert client.produce("elsewhere", [b"fine"]).error == 0
        broker.kill()

    assert sorted(second) == [0, 0, ErrorCode.REQUEST_TIMED_OUT]


def test_a_note_that_does_not_get_to_the_disk_is_no_acknowledgement(tmp_path: Path) -> None:
    """A1: the batch is flushed, the note that it was written is not: 56, and so for every idempotent batch after it."""
    failing = {"KAFKA2011_FAILPOINTS": "producers.before_fsync=raise:EIO@2"}
    with BrokerProcess(tmp_path, SELDOM, environ=failing) as broker, WireClient(broker.modern_port or 0) as client:
        pid, epoch = new_producer(client)
        told = [client.produce("t", [b"%d" % n], producer=(pid, epoch, n)).error for n in range(4)]
        assert client.produce("t", [b"not idempotent"]).error == 0
        assert "disk_failed topic=t partition=0" in broker.output

    assert told == [0] + [ErrorCode.KAFKA_STORAGE_ERROR] * 3


def test_a_note_that_cannot_be_written_refuses_its_batch_by_name(tmp_path: Path) -> None:
    """A1: the disk fails before anything is appended: 56, the connection stays, and a retry is written once."""
    failing = {"KAFKA2011_FAILPOINTS": "producers.before_note=raise:EIO@2"}
    with BrokerProcess(tmp_path, SELDOM, environ=failing) as broker, WireClient(broker.modern_port or 0) as client:
        pid, epoch = new_producer(client)
        told = [client.produce("t", [b"%d" % n], producer=(pid, epoch, n)).error for n in (0, 1, 1)]
        end = client.end("t")

    assert told == [0, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert end == 2 * 11


def test_hundreds_of_short_lived_connections_leave_no_waiter_behind(broker: BrokerProcess) -> None:
    """A2: clients that hang up while they wait; those that stay are all answered, and nothing is left unhandled."""
    chance = random.Random(19)
    port = broker.modern_port or 0
    with WireClient(port) as steady:
        pid, epoch = new_producer(steady)
        answered = 0
        for number in range(300):
            hasty = WireClient(port)
            topic = f"hasty-{chance.randrange(3)}"
            for n in range(chance.randrange(1, 4)):
                hasty.send(ApiKey.PRODUCE, 7, produce_body(topic, built([b"%d-%d" % (number, n)])))
            if chance.random() < 0.2:
                hasty.receive_frame()
            steady.send(ApiKey.PRODUCE, 7, produce_body(topic, built([b"steady"])))
            hasty.close()
            _, answer = steady.receive(ApiKey.PRODUCE, 7)
            answered += errors(answer) == [0]
        noted = [steady.produce("noted", [b"n"], producer=(pid, epoch, n)).error for n in range(5)]
    broker.check()

    assert answered == 300
    assert noted == [0] * 5
