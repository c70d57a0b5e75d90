"""Topics that ask for the disk: nothing is acknowledged, or seen, before it is flushed (issue 25, "must show" 5)."""

from __future__ import annotations

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient, produce_body
from tests.unit.since2011.server.test_batches import built

BATCH = built([b"v"])
FAILPOINT = "modern.flush.before_fsync"


def create(client: WireClient, topic: str) -> None:
    """A topic whose every record is forced to disk."""
    configs = [Struct(name="flush.messages", value="1")]
    row = Struct(name=topic, partitions=1, replication=1, assignments=[], configs=configs)
    answer = client.ask(ApiKey.CREATE_TOPICS, 4, Struct(topics=[row], timeout_ms=1000, validate_only=False))
    assert answer.topics[0].error == 0, answer


def test_readers_and_producers_wait_for_the_disk() -> None:
    """While fsync has not returned, the record is neither acknowledged nor seen; other requests are answered."""
    slow = {"KAFKA2011_FAILPOINTS": f"{FAILPOINT}=sleep:3@2"}
    with BrokerProcess(options=OPTIONS, environ=slow) as broker, WireClient(broker.modern_port or 0) as client:
        create(client, "safe")
        assert produce(client, "safe", BATCH).base_offset == 0
        client.send(ApiKey.PRODUCE, 9, produce_body("safe", BATCH))
        with WireClient(broker.modern_port or 0) as other:
            assert other.end("safe") == 1 and other.fetch("safe", 1).records == b""
        _, answer = client.receive(ApiKey.PRODUCE, 9)

        assert answer.topics[0].partitions[0].base_offset == 1 and client.end("safe") == 2


def test_a_flush_that_fails_is_never_an_acknowledgement() -> None:
    """An fsync that fails is KAFKA_STORAGE_ERROR, now and for every later produce; what was flushed before stands."""
    broken = {"KAFKA2011_FAILPOINTS": f"{FAILPOINT}=raise:EIO@2"}
    errors = ("LogDirectoryOffline",)
    with (
        BrokerProcess(options=OPTIONS, environ=broken, expected_errors=errors) as broker,
        WireClient(broker.modern_port or 0) as client,
    ):
        create(client, "safe")
        answers = [produce(client, "safe", BATCH) for _ in range(3)]

    assert [ErrorCode(one.error) for one in answers] == [
        ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR,
    ]  # fmt: skip
