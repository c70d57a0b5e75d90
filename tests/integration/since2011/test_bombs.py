"""Requests that are small on the wire and large inside, against a real broker. Issue 19 B1, B2, B5."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import Codec, ProduceRequest, encode_set
from since2011.wire.codec import ApiKey
from since2011.wire.compression import GZIP, ZSTD
from since2011.wire.error_codes import ErrorCode
from tests.integration.broker.client import RawClient
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.test_bridge import records_of
from tests.integration.since2011.wire_client import WireClient, fetch_body, produce_body
from tests.unit.since2011.server.test_batches import built, compressed
from tests.waiting import until

MiB = 1 << 20
BOMB = [bytes(990_000)] * 7
"""A batch of seven megabytes that zstd makes a few hundred bytes of."""


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_bomb_is_refused_by_name_and_costs_little(broker: BrokerProcess, client: WireClient, codec: int) -> None:
    """B1: a quarter of a megabyte that inflates to gigabytes: error 10, and +256 MiB at the most."""
    process = psutil.Process(broker.pid)
    assert client.produce("bombed", [b"before"]).error == 0
    before, end = process.memory_info().rss, client.end("bombed")
    one = compressed(codec, list(BOMB))
    answer = client.ask(ApiKey.PRODUCE, 7, produce_body("bombed", one * max(256 * 1024 // len(one), 40)))
    grown = process.memory_info().rss - before

    assert answer.topics[0].partitions[0].error == ErrorCode.MESSAGE_TOO_LARGE
    assert client.end("bombed") == end, "nothing of it was appended"
    assert grown < 256 * MiB
    assert client.produce("bombed", [b"after"]).error == 0


def test_requests_behind_a_large_one_wait_for_it(client: WireClient) -> None:
    """B1: work in a thread does not let a later request of the same client overtake an earlier one.

    See docs/modern-port.md.
    """
    client.send(ApiKey.PRODUCE, 7, produce_body("ordered", built([b"large" * 30_000]), acks=1))
    client.send(ApiKey.PRODUCE, 7, produce_body("ordered", compressed(ZSTD, [b"many"] * 20_000), acks=0))
    client.send(ApiKey.PRODUCE, 7, produce_body("ordered", built([b"small"])))
    for _ in range(2):
        _, answer = client.receive(ApiKey.PRODUCE, 7)
        assert answer.topics[0].partitions[0].error == 0
    found, offset = [], 0
    while offset < client.end("ordered"):
        records = records_of(client.fetch("ordered", offset))
        found += [value for _, value in records]
        offset = records[-1][0] + 1

    assert [found[0][:5], found[1], found[-2], found[-1]] == [b"large", b"many", b"many", b"small"]
    assert len(found) == 20_002


def test_a_fetch_answer_is_bounded_by_what_it_inflates_to(broker: BrokerProcess, client: WireClient) -> None:
    """B2: stored wrappers that would inflate to 190 MiB come a few megabytes at a time, all of them."""
    wrapper = encode_set([bytes(9_900)] * 100, codec=Codec.GZIP)
    with RawClient(broker) as producer:
        producer.send(*(ProduceRequest("wrapped", 0, wrapper).encode() for _ in range(30)))
        producer.wait_for("wrapped", 30 * len(wrapper))
    offset, sizes = 0, []
    while offset < 30 * len(wrapper):
        records = records_of(client.fetch("wrapped", offset, max_bytes=50 * MiB))
        sizes.append(sum(len(value) for _, value in records))
        offset = records[-1][0] + 1

    assert sum(sizes) == 30 * 990_000
    assert max(sizes) < 4 * MiB


def test_answers_that_nobody_reads_are_bounded(tmp_path: Path) -> None:
    """B2: clients that ask for megabytes and read nothing are closed; memory stays, who reads is served."""
    options = OPTIONS | {"max.untaken.answer.bytes": 4 * MiB}
    with BrokerProcess(tmp_path, options) as broker, WireClient(broker.modern_port or 0) as reader:
        process = psutil.Process(broker.pid)
        for _ in range(4):
            assert reader.produce("large", [bytes(900_000)] * 2).error == 0
        before = process.memory_info().rss
        idle = [WireClient(broker.modern_port or 0) for _ in range(20)]
        for client in idle:
            for _ in range(20):
                client.send(ApiKey.FETCH, 11, fetch_body("large", 0, max_bytes=2 * MiB))
        until(lambda: broker.state()["counters"]["connections_closed"].get("untaken", 0) > 10, "those are closed")
        grown = process.memory_info().rss - before
        assert len(records_of(reader.fetch("large", 0, max_bytes=2 * MiB))) == 2
        for client in idle:
            client.close()

    assert grown < 256 * MiB
