"""Batches that are small on the wire and large inside, in all four codecs, to modern topics (issue 25, bad input)."""

from __future__ import annotations

import psutil
import pytest

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from since2011.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient
from tests.unit.since2011.server.test_batches import built, compressed

MiB = 1 << 20
MOST_INFLATED = 64 * MiB
"""What a batch may inflate to (``MAX_INFLATED``)."""


@pytest.fixture(scope="module", params=[GZIP, SNAPPY, LZ4, ZSTD], ids=["gzip", "snappy", "lz4", "zstd"])
def bomb(request: pytest.FixtureRequest) -> bytes:
    """A batch that inflates to 96 MiB of zeros."""
    found = compressed(request.param, [bytes(96 * MiB)])
    assert len(found) < 8 * MiB
    return found


def test_a_bomb_that_must_be_opened_is_refused_by_name(
    broker: BrokerProcess, client: WireClient, bomb: bytes, topic: str
) -> None:
    """A compacted topic looks for keys inside: too large, nothing is stored, memory is bounded, others go on."""
    with Admin(f"127.0.0.1:{broker.modern_port}") as admin:
        settings = {"cleanup.policy": "compact", "max.message.bytes": str(8 * MiB)}
        admin.create(topic, partitions=1, settings=settings)
    process = psutil.Process(broker.pid)
    before = process.memory_info().rss
    answer = produce(client, topic, bomb)
    grown = process.memory_info().rss - before

    assert answer.error == ErrorCode.MESSAGE_TOO_LARGE
    assert grown < 2 * MOST_INFLATED + 64 * MiB
    assert client.end(topic) == 0
    assert produce(client, topic, built([b"v"], key=b"k")).error == ErrorCode.NONE


def test_a_bomb_that_nobody_opens_is_bytes(broker: BrokerProcess, client: WireClient, bomb: bytes, topic: str) -> None:
    """Without a reason to open it, a batch is stored and sent as it came: it costs what it is on the wire."""
    with Admin(f"127.0.0.1:{broker.modern_port}") as admin:
        admin.create(topic, partitions=1, settings={"max.message.bytes": str(8 * MiB)})
    process = psutil.Process(broker.pid)
    before = process.memory_info().rss
    assert produce(client, topic, bomb).error == ErrorCode.NONE
    stored = client.fetch(topic, 0, max_bytes=16 * MiB).records
    grown = process.memory_info().rss - before

    assert bytes(stored)[61:] == bomb[61:]
    assert grown < 64 * MiB
