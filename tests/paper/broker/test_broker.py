"""Sentences of §3 and §3.1 about the broker, against a running one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import ProduceRequest, decode_set, encode_set
from tests.integration.broker.client import RawClient
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker that flushes after three messages, or after a day, in segments of about 1,000 bytes."""
    options = {"log.flush.interval": 3, "log.default.flush.interval.ms": 86_400_000, "log.file.size": 1000}
    with BrokerProcess(options=options) as process:
        yield process


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker) as connection:
        yield connection


def end_of(broker: BrokerProcess, topic: str) -> int:
    found = broker.state()["topics"].get(topic)
    return int(found["partitions"]["0"]["end_offset"]) if found else -1


def test_a_message_is_exposed_only_after_it_is_flushed(broker: BrokerProcess, client: RawClient) -> None:
    """ "A message is only exposed to the consumers after it is flushed", here after three messages (§3.1)."""
    client.produce("exposed", b"hello", b"there")
    until(lambda: end_of(broker, "exposed") == 30, "both are appended")

    assert client.fetch("exposed") == (0, b"")
    assert client.offsets("exposed") == [0]
    assert client.fetch("exposed", 30) == (1, b"")

    client.produce("exposed", b"world")
    client.wait_for("exposed", 45)

    assert client.fetch("exposed") == (0, encode_set([b"hello", b"there", b"world"]))


def test_a_message_is_addressed_by_its_offset(client: RawClient) -> None:
    """ "To compute the id of the next message, we have to add the length of the current message to its id" (§3.1)."""
    client.produce("addressed", b"a", b"bb", b"ccc")
    client.wait_for("addressed", 36)
    offset, found = 0, []
    while offset < 36:
        (message, *_) = decode_set(client.fetch("addressed", offset)[1], offset)
        found.append((offset, message.payload))
        offset = message.next_offset

    assert found == [(0, b"a"), (11, b"bb"), (23, b"ccc")]


def test_a_pull_request_names_an_offset_and_a_size(client: RawClient) -> None:
    """ "Each pull request contains the offset … and an acceptable number of bytes to fetch" (§3.1)."""
    client.produce("pulled", *(b"x" * 90 for _ in range(9)))
    client.wait_for("pulled", 900)

    assert len(client.fetch("pulled", 100, 250)[1]) == 250
    assert [len(client.fetch("pulled", offset, 10_000)[1]) for offset in (0, 500, 900)] == [900, 400, 0]


def test_a_set_of_messages_is_one_publish_request(broker: BrokerProcess, client: RawClient) -> None:
    """ "The producer can send a set of messages in a single publish request" (§3)."""
    before = broker.state()["counters"]["requests"].get("produce", 0)
    client.send(ProduceRequest("published", 0, encode_set([b"m"] * 300)).encode())
    client.wait_for("published", 300 * 11)

    assert broker.state()["counters"]["requests"]["produce"] == before + 1
    assert broker.state()["topics"]["published"]["partitions"]["0"]["end_offset"] == 300 * 11


def test_a_consumer_can_rewind(client: RawClient) -> None:
    """ "A consumer can deliberately rewind back to an old offset and re-consume data" (§3.1)."""
    client.produce("rewound", b"one", b"two", b"six")
    client.wait_for("rewound", 39)
    once = client.fetch("rewound", 13)
    client.fetch("rewound", 39)

    assert client.fetch("rewound", 13) == once
    assert once == (0, encode_set([b"two", b"six"]))


def test_a_log_is_a_set_of_segment_files(broker: BrokerProcess, client: RawClient) -> None:
    """ "A log is implemented as a set of segment files of approximately the same size" (§3.1)."""
    for _ in range(30):
        client.produce("segmented", b"x" * 90, b"y" * 90, b"z" * 90)
    client.wait_for("segmented", 9000)
    segments = broker.state()["topics"]["segmented"]["partitions"]["0"]["segments"]
    files = sorted(path.name for path in (broker.log_dir / "segmented-0").glob("*.kafka"))

    assert [segment["start"] for segment in segments] == list(range(0, 9000, 1200))
    assert files == [f"{start:020d}.kafka" for start in range(0, 9000, 1200)]
    assert client.offsets("segmented", -1, 100) == [9000, *range(8400, -1, -1200)]


def test_the_kernel_moves_the_bytes(broker: BrokerProcess, client: RawClient) -> None:
    """ "Kafka exploits the sendfile API to efficiently deliver bytes in a log segment file" (§3.1)."""
    client.produce("moved", b"x" * 500, b"y", b"z")
    client.wait_for("moved", 532)
    before = broker.state()["counters"]["fetched_bytes"].get("sendfile", 0)
    client.fetch("moved", 0, 532)

    assert broker.state()["counters"]["fetched_bytes"] == {"sendfile": before + 532}
