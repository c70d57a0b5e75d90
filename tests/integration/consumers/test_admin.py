"""``consumers.Groups`` and ``Producer.create``: what the commands do, for programs (issue 22 A3, A4, A6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from consumers import Consumer, GroupHasMembers, Groups, SimpleConsumer
from consumers.admin import UnknownGroup
from consumers.cli.group import group
from kafka2011 import Producer
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConfigError, WireError, WrongPartition
from kafka2011.types import BrokerPartition
from kafka2011.wire import AckLevel, encode_set
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.testing import fresh_chroot

MORNING = datetime(2011, 6, 12, 9, tzinfo=UTC)
PART = BrokerPartition(0, 0)


@pytest.fixture(scope="module")
def filled(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Two brokers; on broker 0 ten plain messages, and ten JSON events, a minute apart."""
    arena = Arena(fresh_chroot(zookeeper.connect), tmp_path_factory.mktemp("admin"))
    try:
        broker = arena.broker(0, partitions=1)
        arena.broker(1, partitions=3)
        arena.send(0, 0, 10)
        events = [{"n": n, "timestamp": (MORNING + timedelta(minutes=n)).timestamp()} for n in range(10)]
        with BrokerConnection(broker.host, broker.port) as connection:
            data = encode_set([json.dumps(event).encode() for event in events])
            connection.produce_acked("events", 0, data, AckLevel.FLUSHED)
        until(lambda: {"events", TOPIC} <= set(arena.registry.brokers.topics()), "the topics are announced")
        yield arena
    finally:
        arena.close()


@pytest.fixture
def groups(filled: Arena) -> Iterator[Groups]:
    with Groups(filled.connect) as opened:
        yield opened


def test_a_group_is_moved_described_and_reset_by_a_program(filled: Arena, groups: Groups) -> None:
    """List, describe, seek, export, store and reset need no command (issue 22 A3)."""
    (move,) = groups.seek("reader", "end", topics=[TOPIC])
    assert (move.old, move.partition) == (None, PART)
    assert [row.group for row in groups.list()] == ["reader"]
    (row,) = groups.describe("reader")
    assert (row.offset, row.lag) == (move.new, 0)

    (back,) = groups.seek("reader", -3)
    assert back.new < move.new
    assert groups.offsets("reader") == {TOPIC: {PART: back.new}}
    groups.store("reader", {TOPIC: {PART: 0}})
    assert groups.offsets("reader") == {TOPIC: {PART: 0}}
    groups.reset("reader")
    assert groups.offsets("reader") == {}


def test_a_living_group_is_not_moved(filled: Arena, groups: Groups) -> None:
    """What members would overwrite is refused, by name, unless forced (issue 22 A3)."""
    with Consumer(filled.connect, "alive", autocommit=False) as consumer:
        consumer.create_message_streams(TOPIC)
        until(lambda: groups.members("alive"), "the member registered")
        with pytest.raises(GroupHasMembers, match="stop them first"):
            groups.seek("alive", "end", topics=[TOPIC])
        groups.seek("alive", "end", topics=[TOPIC], force=True)


@pytest.mark.parametrize("nonsense", ["sideways", "", "+", "@tomorrow", "1e3", "²"])
def test_a_place_that_means_nothing_is_refused(groups: Groups, nonsense: str) -> None:
    """A wrong word is an error that lists the right ones; a wrong group lists the groups there are (issue 22 A3)."""
    with pytest.raises(ConfigError, match="none of start, end"):
        groups.plan("reader", nonsense, topics=[TOPIC])
    with pytest.raises(UnknownGroup, match="no group is called"):
        groups.describe("nobody")


def test_a_time_without_a_zone_is_refused(groups: Groups) -> None:
    """A program's time says its zone; nobody guesses (issue 22 A4)."""
    with pytest.raises(ConfigError, match="no time zone"):
        groups.plan("reader", datetime(2011, 6, 12, 9))


def test_a_scan_finds_the_message_of_a_time(groups: Groups) -> None:
    """By segment, a young topic has one answer; by scan, the first event of that time or later (issue 22 A4)."""
    by_segment = groups.plan("timed", MORNING + timedelta(minutes=6), topics=["events"])
    by_scan = groups.plan("timed", MORNING + timedelta(minutes=6), topics=["events"], scan=True)
    after_all = groups.plan("timed", MORNING + timedelta(days=1), topics=["events"], scan=True)

    assert [(m.new, m.why) for m in by_segment] == [(0, "no segment is that old")]
    assert by_scan[0].new > 0
    with Consumer(groups._zookeeper, "timed", autocommit=False, timeout_s=60) as consumer:
        groups.apply("timed", by_scan, force=True)
        (stream,) = consumer.create_message_streams("events")
        assert json.loads(next(stream).payload)["n"] == 6
    assert after_all[0].why == "no message names that time or a later one"


def test_the_plan_of_the_command_says_why_and_when(filled: Arena) -> None:
    """``group seek @TIME`` names the moment with its zone and the rule that chose the offset (issue 22 A4)."""
    ran = CliRunner().invoke(
        group, ["seek", "timed2", "-z", filled.connect, "--topic", "events", "--to", "@2011-06-12T09:06+00:00"]
    )

    assert ran.exit_code == 0, ran.output
    moment = datetime.fromisoformat(ran.stderr.split("the time meant is ")[1].split()[0])
    assert moment == MORNING + timedelta(minutes=6)
    assert "no segment is that old" in ran.stdout


def test_a_simple_consumer_says_what_is_wrong(filled: Arena) -> None:
    """An offset inside a message, and a partition as ``group describe`` prints it, are answered in words (22 A5)."""
    broker = filled.brokers[0]
    with SimpleConsumer(broker.host, broker.port) as consumer:
        with pytest.raises(WireError, match="no message can be read at offset 3 of orders-0"):
            consumer.fetch(TOPIC, 0, 3)
        with pytest.raises(ConfigError, match="partition 1 of broker 0: connect to that one"):
            consumer.fetch(TOPIC, "0-1", 0)  # type: ignore[arg-type]
        with pytest.raises(WrongPartition, match="no such partition"):
            consumer.fetch(TOPIC, 7, 0)
        assert len(consumer.fetch(TOPIC, 0, consumer.earliest(TOPIC, 0))) == 10


def test_created_first_a_key_keeps_its_partition(filled: Arena) -> None:
    """After create() a key sees every partition from its first message on (issue 22 A6)."""
    with Producer(zookeeper=filled.connect, sync=True) as producer:
        producer.create("keyed")
        for number in range(20):
            producer.send("keyed", b"%d" % number, key="member42")

    def ends() -> list[int]:
        found = []
        for broker in filled.brokers.values():
            with BrokerConnection(broker.host, broker.port) as connection:
                for partition in range(int(str(broker.options["num.partitions"]))):
                    found.append(connection.offsets("keyed", partition)[0])
        return found

    size = sum(len(encode_set([b"%d" % number])) for number in range(20))
    until(lambda: sum(ends()) == size, "all messages are flushed")
    assert sorted(ends()) == [0, 0, 0, size]
