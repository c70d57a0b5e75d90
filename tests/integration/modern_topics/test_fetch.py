"""Fetch from modern topics at the wire level: limits, waiting, isolation, epochs, topic ids."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient, fetch_body
from tests.unit.since2011.server.test_batches import built
from tests.waiting import until

BATCH = built([b"x" * 1000])
BIG = built([b"y" * 300_000])


def fetch(client: WireClient, body: Struct, version: int = 12) -> Struct:
    return client.ask(ApiKey.FETCH, version, body)


def rows(topic: str, *partitions: dict[str, int]) -> list[Struct]:
    defaults = {"max_bytes": 1 << 20, "offset": 0}
    return [Struct(name=topic, partitions=[Struct(**(defaults | one)) for one in partitions])]


def only(answer: Struct) -> Struct:
    found: Struct = answer.topics[0].partitions[0]
    return found


def asked(topics: list[Struct], **more: object) -> Struct:
    given: dict[str, object] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 25, "isolation": 0} | more
    return Struct(session_id=0, session_epoch=-1, topics=topics, forgotten=[], rack="", **given)


def test_the_first_batch_comes_however_small_the_limit(client: WireClient, topic: str) -> None:
    """Sheet §6.2: at least one whole batch; otherwise the limits of partition and request hold."""
    for _ in range(3):
        produce(client, topic, BATCH)
    sizes = [
        len(only(fetch(client, asked(rows(topic, {"index": 0, "max_bytes": most}), max_bytes=total))).records)
        for most, total in ((1, 1 << 20), (1 << 20, 1), (2 * len(BATCH), 1 << 20), (1 << 20, 1 << 20))
    ]

    assert sizes == [len(BATCH), len(BATCH), 2 * len(BATCH), 3 * len(BATCH)]


def test_later_partitions_that_do_not_fit_are_empty(broker: BrokerProcess, client: WireClient) -> None:
    """Sheet §6.2: only the first partition that has anything may exceed the request's limit."""
    topics = [f"order-{n}-{uuid.uuid4().hex[:6]}" for n in range(3)]
    for name in topics[1:]:
        produce(client, name, BATCH)
    body = asked([rows(name, {"index": 0})[0] for name in topics[1:]], max_bytes=10)
    found = fetch(client, body).topics

    assert [len(topic.partitions[0].records) for topic in found] == [len(BATCH), 0]


def test_large_answers_go_by_sendfile(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """D18: the kernel moves the stored bytes; the broker counts them and does not hold them."""

    def sent() -> int:
        return int(broker.state()["counters"]["fetched_bytes"].get("sendfile", 0))

    before = sent()
    produce(client, topic, BIG)
    records = client.fetch(topic, 0).records

    assert records[16:] == BIG[16:] and sent() - before == len(BIG)


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_with_names(client: WireClient, topic: str, version: int) -> None:
    """Sheet §11.1: Fetch 4 to 12 by name."""
    produce(client, topic, BATCH)
    one = fetch(client, asked(rows(topic, {"index": 0})), version).topics[0].partitions[0]

    assert (one.error, one.high_watermark, one.last_stable, one.aborted) == (0, 1, 1, None)
    assert one.records[16:] == BATCH[16:]


@pytest.mark.parametrize("version", range(13, 18))
def test_topics_by_id(client: WireClient, topic: str, version: int) -> None:
    """Sheet §11.1: from 13 on ids stand for names; an id nobody has is UNKNOWN_TOPIC_ID, and disturbs nobody."""
    produce(client, topic, BATCH)
    question = Struct(topics=[Struct(name=topic, topic_id=NO_UUID)], auto_create=False)
    told = client.ask(ApiKey.METADATA, 12, question)
    topic_id, unknown = told.topics[0].topic_id, uuid.uuid4()
    partitions = [Struct(index=0, offset=0, max_bytes=1 << 20)]
    body = asked([Struct(topic_id=one, partitions=partitions) for one in (topic_id, unknown)])
    found = {one.topic_id: one.partitions[0] for one in fetch(client, body, version).topics}

    assert topic_id.int and found[topic_id].records[16:] == BATCH[16:]
    assert found[unknown].error == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -1}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"last_epoch": 3}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_errors_are_told_at_once(client: WireClient, topic: str, changes: dict[str, int], error: ErrorCode) -> None:
    """Sheet §15.13: a fetch with an error in any partition does not wait."""
    produce(client, topic, BATCH)
    began = time.monotonic()
    body = asked(rows(topic, {"index": 0, "offset": 1}, {"index": 0} | changes), max_wait_ms=30_000)
    found = fetch(client, body).topics[0].partitions

    assert [one.error for one in found] == [0, error] and time.monotonic() - began < 15


def test_a_session_nobody_gave_is_refused(client: WireClient, topic: str) -> None:
    """Sheet §6.4: session id 0 in every answer; whoever names another is told 70 and fetches in full again."""
    produce(client, topic, BATCH)
    body = asked(rows(topic, {"index": 0}))
    assert fetch(client, body).session_id == 0
    body.session_id, body.session_epoch = 12, 3
    assert fetch(client, body).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_waiting_fetch_hears_of_an_append(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """Sheet §6.3: parked until ``min_bytes`` are there, then read again and answered."""
    produce(client, topic, BATCH)
    body = asked(rows(topic, {"index": 0, "offset": 1}), max_wait_ms=60_000, min_bytes=len(BATCH) + 1)
    found: list[Struct] = []
    waiting = threading.Thread(target=lambda: found.append(fetch(client, body).topics[0].partitions[0]))
    waiting.start()
    assert broker.modern_port is not None
    with WireClient(broker.modern_port) as other:
        produce(other, topic, BATCH)
        until(lambda: broker.state()["counters"]["requests"].get("modern_fetch", 0) > 0, "the fetch has arrived")
        assert not found, "one batch is less than min_bytes"
        produce(other, topic, BATCH)
    waiting.join(30)

    assert len(found[0].records) == 2 * len(BATCH)


def test_a_reader_behind_by_a_segment_does_not_wait(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """An answer ends with its segment whatever ``min_bytes`` is; at the end of the log a reader waits (sheet §6.2)."""
    with Admin(f"127.0.0.1:{broker.modern_port}") as admin:
        admin.create(topic, partitions=1, settings={"segment.bytes": str(len(BATCH))})
    for _ in range(3):
        produce(client, topic, BATCH)
    behind = asked(rows(topic, {"index": 0, "offset": 1}), min_bytes=1 << 20, max_wait_ms=60_000)
    assert bytes(only(fetch(client, behind)).records)[:8] == (1).to_bytes(8, "big")
    number = client.send(
        ApiKey.FETCH, 12, asked(rows(topic, {"index": 0, "offset": 2}), min_bytes=2000, max_wait_ms=60_000)
    )
    with WireClient(broker.modern_port or 0) as other:
        produce(other, topic, BATCH)
    answered, answer = client.receive(ApiKey.FETCH, 12)
    assert answered == number
    assert only(answer).high_watermark == 4


def test_nothing_asked_for_is_answered_at_once(client: WireClient) -> None:
    """Sheet §6.3: a fetch without partitions does not wait."""
    assert fetch(client, asked([], max_wait_ms=30_000)).topics == []


def test_readers_of_committed_records(tmp_path: Path) -> None:
    """Sheet §6.2, §2.2: isolation 1 reads to the last stable offset and is told what was aborted; 0 sees everything."""
    from tests.integration.modern_topics.transactions import aborted_and_open

    with BrokerProcess(tmp_path / "data", options=OPTIONS) as broker:
        assert broker.modern_port is not None
        with WireClient(broker.modern_port) as client:
            produce(client, "txn", built([b"plain"]))
    n_open = aborted_and_open(tmp_path / "data" / ".modern" / "logs" / "txn-0")
    with BrokerProcess(tmp_path / "data", options=OPTIONS) as broker:
        assert broker.modern_port is not None
        with WireClient(broker.modern_port) as client:
            everything = only(fetch(client, asked(rows("txn", {"index": 0, "offset": 1}))))
            committed = only(fetch(client, asked(rows("txn", {"index": 0, "offset": 1}), isolation=1)))
            ends = [
                client.ask(ApiKey.LIST_OFFSETS, 7, Struct(replica_id=-1, isolation=isolation, topics=[
                    Struct(name="txn", partitions=[Struct(index=0, timestamp=-1)])
                ])).topics[0].partitions[0].offset
                for isolation in (0, 1)
            ]  # fmt: skip

    assert everything.aborted is None and everything.high_watermark == n_open + 1
    assert (committed.last_stable, committed.high_watermark) == (n_open, n_open + 1)
    assert [(one.producer_id, one.first_offset) for one in committed.aborted] == [(900, 1)]
    assert len(committed.records) < len(everything.records) and ends == [n_open + 1, n_open]


def test_a_reader_of_another_history_is_told_where_they_part(client: WireClient, topic: str) -> None:
    """Sheet §6.2: from version 12 on a fetch that names its last epoch is checked against the leader's epochs."""
    produce(client, topic, BATCH)
    good = asked(rows(topic, {"index": 0, "offset": 1, "last_epoch": 0}))
    assert fetch(client, good).topics[0].partitions[0].diverging_epoch is None
    assert fetch_body(topic, 0).session_epoch == -1
