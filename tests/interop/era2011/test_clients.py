"""Programs written for Kafka 0.7 publish to this broker and read from it, unmodified (docs/paper-vs-code.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka2011.producer import Producer, StaticRouter, parse_brokers
from kafka2011.testing import BrokerProcess
from tests.interop.era2011.clients import NODE, PYTHON_2, READS_MAGIC, WRITES_MAGIC, OldClient, old_client, stored
from tests.waiting import until

MESSAGES = ["hello", "there", "GET /in/some-profile"]
NAMES = [*NODE, *PYTHON_2]


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options={"log.flush.interval": 1}) as process:
        yield process


@pytest.mark.parametrize("name", NAMES)
def test_an_old_client_publishes_and_reads_back(broker: BrokerProcess, name: str) -> None:
    """What a 0.7 client wrote it reads back, and we read it too, in the format it chose (docs/paper-vs-code.md)."""
    client = old_client(name)
    client.publish(broker, f"own-{name}", *MESSAGES)
    found = stored(broker, f"own-{name}")

    assert [message.payload.decode() for message in found] == MESSAGES
    assert {message.magic for message in found} == {WRITES_MAGIC[name]}
    assert client.read(broker, f"own-{name}", len(MESSAGES)) == MESSAGES


@pytest.fixture(scope="module")
def shared_topics(broker: BrokerProcess) -> dict[int, list[str]]:
    """One topic per message format, written by every client there is; what each topic holds, in order."""
    written: dict[int, list[str]] = {0: [], 1: []}
    for name in NAMES:
        try:
            client: OldClient = old_client(name)
        except pytest.skip.Exception:
            continue
        topic = written[WRITES_MAGIC[name]]
        topic += [f"{name} {i}" for i in range(2)]
        client.publish(broker, f"magic-{WRITES_MAGIC[name]}", *topic[-2:])
    written[1] += ["kafka2011 0", "kafka2011 1"]
    with Producer(StaticRouter(parse_brokers(broker.address), [0])) as producer:
        producer.send("magic-1", [text.encode() for text in written[1][-2:]])
    until(lambda: len(stored(broker, "magic-1")) == len(written[1]), "our own messages are stored")
    return written


@pytest.mark.parametrize("name", NAMES)
def test_an_old_client_reads_what_the_others_wrote(
    broker: BrokerProcess, name: str, shared_topics: dict[int, list[str]]
) -> None:
    """Bytes out are bytes in: any client reads what any other wrote in a format it knows.

    See docs/protocol.md, docs/paper-vs-code.md.
    """
    client = old_client(name)
    for magic in READS_MAGIC[name]:
        if shared_topics[magic]:
            assert client.read(broker, f"magic-{magic}", len(shared_topics[magic])) == shared_topics[magic]


def test_samsa_uses_the_multi_requests(broker: BrokerProcess) -> None:
    """MULTIPRODUCE and MULTIFETCH as samsa's low-level client writes them (docs/protocol.md)."""
    found = json.loads(old_client("samsa").run("multi", broker, "multi", *MESSAGES))

    assert found == [MESSAGES, MESSAGES]


def test_samsa_writes_the_newer_format_on_request(broker: BrokerProcess) -> None:
    """Magic 1 from a client that defaults to 0 (docs/paper-vs-code.md)."""
    old_client("samsa").publish(broker, "samsa-1", *MESSAGES, verb="publish-magic-1")

    assert {message.magic for message in stored(broker, "samsa-1")} == {1}


def test_brod_asks_for_offsets(broker: BrokerProcess) -> None:
    """OFFSETS latest and earliest as brod asks them: the end is the next resume offset (docs/paper-vs-code.md)."""
    client = old_client("brod")
    client.publish(broker, "offsets", *MESSAGES)
    end = stored(broker, "offsets")[-1].next_offset
    latest, earliest = json.loads(client.run("offsets", broker, "offsets"))

    assert (latest[0], earliest) == (end, [0])


def test_franz_kafka_compresses(broker: BrokerProcess) -> None:
    """A gzip wrapper made by node is stored as it is and opened by both sides (docs/protocol.md)."""
    client = old_client("franz-kafka")
    client.publish(broker, "gzip", *MESSAGES, verb="publish-gzip")

    assert [message.payload.decode() for message in stored(broker, "gzip")] == MESSAGES
    assert client.read(broker, "gzip", 3) == MESSAGES
