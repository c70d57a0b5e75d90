"""Requests about topics and settings at the wire level: what is made, what is refused, and with which code."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient
from tests.unit.since2011.server.test_batches import built
from tests.waiting import until

TOPIC, BROKER, LOGGER = 2, 4, 8


def create(client: WireClient, *topics: Struct, validate_only: bool = False, version: int = 7) -> list[Struct]:
    body = Struct(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return list(client.ask(ApiKey.CREATE_TOPICS, version, body).topics)


def wanted(name: str, partitions: int = -1, replication: int = -1, by_hand: Any = (), **configs: str | None) -> Struct:
    assignments = [Struct(index=index, brokers=brokers) for index, brokers in by_hand]
    settings = [Struct(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    return Struct(name=name, partitions=partitions, replication=replication, assignments=assignments, configs=settings)


def delete(client: WireClient, name: str | None, topic_id: uuid.UUID = NO_UUID) -> Struct:
    body = Struct(topics=[Struct(name=name, topic_id=topic_id)], topic_names=[], timeout_ms=5000)
    gone: Struct = client.ask(ApiKey.DELETE_TOPICS, 6, body).responses[0]
    return gone


def describe(client: WireClient, kind: int, name: str, *keys: str, synonyms: bool = True) -> Struct:
    resource = Struct(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    body = Struct(resources=[resource], include_synonyms=synonyms, include_documentation=True)
    found: Struct = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, body).results[0]
    return found


def values(result: Struct) -> dict[str, tuple[str, int]]:
    return {config.name: (config.value, config.config_source) for config in result.configs}


def alter(client: WireClient, kind: int, name: str, *changes: tuple[str, int, str | None], dry: bool = False) -> Struct:
    configs = [Struct(name=setting, config_operation=operation, value=value) for setting, operation, value in changes]
    resource = Struct(resource_type=kind, resource_name=name, configs=configs)
    body = Struct(resources=[resource], validate_only=dry)
    altered: Struct = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).responses[0]
    return altered


def partitions_of(client: WireClient, topic: str) -> int:
    asked = Struct(topics=[Struct(topic_id=NO_UUID, name=topic)], auto_create=False)
    return len(client.ask(ApiKey.METADATA, 12, asked).topics[0].partitions)


def test_a_topic_is_made_with_its_settings(client: WireClient, topic: str) -> None:
    """CreateTopics 7 answers id, partitions, replicas and every setting that holds (docs/since-2011.md)."""
    (made,) = create(client, wanted(topic, 3, 1, retention_ms="5000"))
    assert (made.error, made.num_partitions, made.replication_factor) == (0, 3, 1)
    assert made.topic_id != NO_UUID
    told = {config.name: (config.value, config.config_source) for config in made.configs}
    assert told["retention.ms"] == ("5000", 1)
    assert told["segment.bytes"] == ("1073741824", 5)
    assert partitions_of(client, topic) == 3
    assert create(client, wanted(topic, 3))[0].error == 36


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    """CreateTopics 2 to 7 make a topic (docs/since-2011.md)."""
    assert create(client, wanted(topic, 1, 1), version=version)[0].error == 0


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (wanted("a b"), 17),
        (wanted("x" * 250), 17),
        (wanted("__consumer_offsets"), 17),
        (wanted("zero", 0), 37),
        (wanted("many", 5001), 37),
        (wanted("twice", 1, 2), 38),
        (wanted("none", 1, 0), 38),
        (wanted("by-hand", by_hand=[(0, [7])]), 39),
        (wanted("gap", by_hand=[(1, [0])]), 39),
        (wanted("two-replicas", by_hand=[(0, [0, 0])]), 39),
        (wanted("both", 1, 1, by_hand=[(0, [0])]), 42),
        (wanted("setting", no_such="1"), 40),
        (wanted("value", retention_ms="soon"), 40),
        (wanted("null", retention_ms=None), 40),
        (wanted("format", log_format="2012"), 40),
        (wanted("old", log_format="2011", retention_ms="5"), 40),
        (wanted("old", 1, 2, log_format="2011"), 38),
    ],
    ids=lambda value: value.name[:20] if isinstance(value, Struct) else str(value),
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_topics_that_cannot_be(client: WireClient, asked: Struct, error: int, validate_only: bool) -> None:
    """Each mistake has its code and a sentence, and leaves nothing behind (docs/since-2011.md)."""
    good = f"beside-{uuid.uuid4().hex[:8]}"
    refused, made = create(client, asked, wanted(good), validate_only=validate_only)
    assert (refused.error, made.error) == (error, 0)
    assert refused.message
    names = {topic.name for topic in client.ask(ApiKey.METADATA, 12, Struct(topics=None, auto_create=False)).topics}
    assert asked.name not in names
    assert (good in names) is not validate_only


def test_names_that_metrics_cannot_tell_apart(client: WireClient, topic: str) -> None:
    """a.b beside a_b: 17 (docs/since-2011.md)."""
    create(client, wanted(f"{topic}.b"))
    assert create(client, wanted(f"{topic}_b"))[0].error == 17


def test_a_topic_of_2011_by_request(client: WireClient, topic: str) -> None:
    """log.format=2011 makes a topic of the paper's, and DescribeConfigs says so (D16)."""
    (made,) = create(client, wanted(topic, 2, log_format="2011"))
    assert (made.error, made.num_partitions) == (0, 2)
    told = values(describe(client, TOPIC, topic))
    assert told["log.format"][0] == "2011"
    assert alter(client, TOPIC, topic, ("retention.ms", 0, "5")).error == 40
    assert delete(client, topic).error != 0


def test_a_deleted_topic_is_gone_and_its_name_free(client: WireClient, broker: BrokerProcess, topic: str) -> None:
    """DeleteTopics by name and by id; the files go, a new topic of the name is empty (docs/since-2011.md)."""
    first = create(client, wanted(topic, 1))[0].topic_id
    produce(client, topic, built([b"old"]))
    directory = broker.log_dir / ".modern" / "logs" / f"{topic}-0"
    assert directory.exists()
    gone = delete(client, topic)
    assert (gone.error, gone.topic_id) == (0, first)
    until(lambda: not directory.exists(), "the partition's directory is put aside")
    assert delete(client, topic).error == 3
    assert delete(client, None, first).error == 100
    second = create(client, wanted(topic, 1))[0].topic_id
    assert second != first
    assert produce(client, topic, built([b"new"])).base_offset == 0
    gone = delete(client, None, second)
    assert (gone.error, gone.name) == (0, topic)
    assert delete(client, "__consumer_offsets").error == 17
    assert delete(client, topic, second).error == 42


def test_a_topic_grows_and_never_shrinks(client: WireClient, topic: str) -> None:
    """CreatePartitions: more, by hand or not; as many or fewer are 37 (docs/since-2011.md)."""
    create(client, wanted(topic, 2))

    def grow(count: int, by_hand: list[list[int]] | None = None, dry: bool = False, name: str = topic) -> int:
        assignments = None if by_hand is None else [Struct(broker_ids=brokers) for brokers in by_hand]
        asked = Struct(name=name, count=count, assignments=assignments)
        body = Struct(topics=[asked], timeout_ms=5000, validate_only=dry)
        return int(client.ask(ApiKey.CREATE_PARTITIONS, 3, body).results[0].error)

    assert grow(4, dry=True) == 0
    assert partitions_of(client, topic) == 2
    assert grow(4) == 0
    assert partitions_of(client, topic) == 4
    assert grow(5, [[0]]) == 0
    assert [grow(5), grow(3), grow(6, [[0], [0]]), grow(6, [[7]]), grow(2, name="nowhere")] == [37, 37, 39, 39, 3]
    assert produce(client, topic, built([b"x"]), index=4).error == 0


def test_settings_change_one_by_one(client: WireClient, topic: str) -> None:
    """IncrementalAlterConfigs sets, deletes, appends, subtracts; what cannot be is refused whole.

    See docs/since-2011.md.
    """
    create(client, wanted(topic))
    assert alter(client, TOPIC, topic, ("retention.ms", 0, "7000"), ("cleanup.policy", 2, "compact")).error == 0
    told = values(describe(client, TOPIC, topic))
    assert (told["retention.ms"], told["cleanup.policy"]) == (("7000", 1), ("delete,compact", 1))
    assert alter(client, TOPIC, topic, ("cleanup.policy", 3, "delete"), ("retention.ms", 1, None)).error == 0
    told = values(describe(client, TOPIC, topic))
    assert (told["retention.ms"], told["cleanup.policy"]) == (("604800000", 5), ("compact", 1))
    assert alter(client, TOPIC, topic, ("segment.bytes", 0, "1"), ("retention.ms", 0, "1")).error == 40
    assert alter(client, TOPIC, topic, ("retention.ms", 0, "1"), dry=True).error == 0
    assert values(describe(client, TOPIC, topic))["retention.ms"] == ("604800000", 5)
    refused = [
        alter(client, TOPIC, topic, *changes).error
        for changes in (
            [("retention.ms", 2, "1")],
            [("retention.ms", 9, "1")],
            [("retention.ms", 0, None)],
            [("retention.ms", 0, "1"), ("retention.ms", 0, "2")],
            [("no.such", 0, "1")],
        )
    ]
    assert refused == [40, 42, 42, 42, 40]
    others = ((TOPIC, "nowhere"), (TOPIC, ""), (LOGGER, "0"), (9, "x"))
    assert [alter(client, kind, name).error for kind, name in others] == [3, 42, 42, 42]


def test_settings_are_replaced_whole(client: WireClient, topic: str) -> None:
    """AlterConfigs forgets what is not named (docs/since-2011.md)."""
    create(client, wanted(topic, retention_ms="5", segment_ms="6"))
    resource = Struct(resource_type=TOPIC, resource_name=topic, configs=[Struct(name="segment.ms", value="7")])
    body = Struct(resources=[resource], validate_only=False)
    assert client.ask(ApiKey.ALTER_CONFIGS, 2, body).responses[0].error == 0
    told = values(describe(client, TOPIC, topic))
    assert (told["retention.ms"], told["segment.ms"]) == (("604800000", 5), ("7", 1))


def test_a_brokers_settings_hold_for_its_topics(client: WireClient, topic: str) -> None:
    """A broker's default changed while it runs is a topic's, with its source and synonyms (docs/since-2011.md)."""
    create(client, wanted(topic))
    assert alter(client, BROKER, "", ("log.retention.ms", 0, "111")).error == 0
    assert alter(client, BROKER, "0", ("log.retention.ms", 0, "222")).error == 0
    entry = describe(client, TOPIC, topic, "retention.ms").configs[0]
    assert (entry.value, entry.config_source, entry.config_type) == ("222", 2, 5)
    assert entry.documentation
    sources = [(one.name, one.value, one.source) for one in entry.synonyms]
    default = ("log.retention.ms", "604800000", 5)
    assert sources == [("log.retention.ms", "222", 2), ("log.retention.ms", "111", 3), default]
    assert values(describe(client, BROKER, ""))["log.retention.ms"] == ("111", 3)
    own = describe(client, BROKER, "0")
    assert values(own)["log.retention.ms"] == ("222", 2)
    assert next(c for c in own.configs if c.name == "modern.port").read_only
    assert [c.value for c in own.configs if c.is_sensitive] == [None] * sum(c.is_sensitive for c in own.configs)
    assert alter(client, BROKER, "0", ("log.retention.ms", 1, None)).error == 0
    assert alter(client, BROKER, "", ("log.retention.ms", 1, None)).error == 0
    assert values(describe(client, TOPIC, topic))["retention.ms"] == ("604800000", 5)
    assert alter(client, BROKER, "0", ("port", 0, "1")).error == 40
    assert alter(client, BROKER, "7", ("log.retention.ms", 0, "1")).error == 42
    assert describe(client, BROKER, "7").error == 42
    assert (describe(client, LOGGER, "0").error, describe(client, TOPIC, "nowhere").error) == (0, 3)


def test_what_there_is_not_is_said_truthfully(client: WireClient, topic: str) -> None:
    """No authorizer, no second replica, no quotas, no SCRAM users: each answered as such (docs/since-2011.md)."""
    create(client, wanted(topic, 2))
    acl = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None}
    asked = Struct(**acl, host_filter=None, operation=1, permission_type=1)
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, asked).error == 54
    assert client.ask(ApiKey.DELETE_ACLS, 3, Struct(filters=[asked])).filter_results[0].error == 54
    election = Struct(election_type=0, topic_partitions=[Struct(topic=topic, partitions=[0, 9])], timeout_ms=1)
    results = client.ask(ApiKey.ELECT_LEADERS, 2, election).results[0].partitions
    assert [row.error for row in results] == [84, 3]
    everywhere = Struct(election_type=0, topic_partitions=None, timeout_ms=1)
    assert client.ask(ApiKey.ELECT_LEADERS, 2, everywhere).results == []
    moves = [Struct(partition_index=0, replicas=[0]), Struct(partition_index=1, replicas=[0, 1])]
    moved = client.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, Struct(timeout_ms=1, topics=[Struct(name=topic, partitions=moves)])
    )
    assert [row.error for row in moved.responses[0].partitions] == [0, 39]
    cancel = [Struct(name=topic, partitions=[Struct(partition_index=0, replicas=None)])]
    cancelled = client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, Struct(timeout_ms=1, topics=cancel))
    assert [row.error for row in cancelled.responses[0].partitions] == [85]
    assert client.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, Struct(timeout_ms=1, topics=None)).topics == []
    entity = [Struct(entity_type="user", entity_name="u")]
    entry = Struct(entity=entity, ops=[Struct(key="producer_byte_rate", value=1.0, remove=False)])
    refused = client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, Struct(entries=[entry], validate_only=False)).entries[0]
    assert (refused.error, "not applied" in refused.error_message) == (42, True)
    assert client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, Struct(components=[], strict=False)).entries == []
    scram = client.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, Struct(users=[Struct(name="u")]))
    assert (scram.error, scram.results[0].error) == (0, 91)


def test_topics_and_settings_outlive_the_broker(topic: str) -> None:
    """A lone broker that is killed and started again has its topics, ids and settings (design §3.1, point 1)."""
    with BrokerProcess(options=OPTIONS) as process:
        assert process.modern_port is not None
        with WireClient(process.modern_port) as client:
            made = create(client, wanted(topic, 3, retention_ms="-1"))[0]
            produce(client, topic, built([b"kept"]), index=2)
        process.kill()
        process.start()
        assert process.modern_port is not None
        with WireClient(process.modern_port) as client:
            assert values(describe(client, TOPIC, topic))["retention.ms"] == ("-1", 1)
            answer = client.ask(
                ApiKey.METADATA, 12, Struct(topics=[Struct(topic_id=made.topic_id, name=None)], auto_create=False)
            )
            assert (answer.topics[0].name, len(answer.topics[0].partitions)) == (topic, 3)
            assert produce(client, topic, built([b"more"]), index=2).base_offset == 1


def test_deletion_can_be_forbidden(topic: str) -> None:
    """delete.topic.enable=false: 73, and the topic stays (docs/since-2011.md)."""
    with BrokerProcess(options=OPTIONS | {"delete.topic.enable": "false"}) as process:
        assert process.modern_port is not None
        with WireClient(process.modern_port) as client:
            create(client, wanted(topic))
            assert delete(client, topic).error == 73
            assert partitions_of(client, topic) == 1
