"""``kafka2011 consume``, ``group`` and ``offsets`` against a real ZooKeeper and broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import consumers.cli.group
from consumers import Consumer
from consumers.cli.consume import consume
from consumers.cli.group import group
from consumers.cli.offsets import offsets
from kafka2011.cli.offset_choice import find_start
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.types import BrokerPartition
from kafka2011.wire import AckLevel, encode_set
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.waiting import until
from zk_registry import paths
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.offsets import OffsetRegistry
from zk_registry.operations import Create, Delete
from zk_registry.schemas import ZooKeeperSchemaRegistry
from zk_registry.testing import fresh_chroot

SIZE = 19
"""Bytes of each of the arena's messages in the log."""


def run(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def filled(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """One partition with ten messages; every test takes a group of its own."""
    arena = Arena(fresh_chroot(zookeeper.connect), tmp_path_factory.mktemp("commands"))
    try:
        arena.broker(0, partitions=1)
        arena.send(0, 0, 10)
        until(lambda: arena.registry.brokers.partitions(TOPIC), "the topic is announced")
        yield arena
    finally:
        arena.close()


def test_consume_shows_each_message_once_to_a_group(filled: Arena) -> None:
    """Messages go to stdout, offsets to ZooKeeper: a second run goes on where the first ended (§3.2)."""
    first = run(consume, TOPIC, "-g", "cli", "-z", filled.connect, "-n", "4")
    assert first.exit_code == 0, first.output
    second = run(consume, "--topic", TOPIC, "-g", "cli", "-z", filled.connect, "-n", "6", "-f", "%p %o %s\\n")
    assert first.stdout.splitlines() == [f"p1-{i:06d}" for i in range(4)]
    assert second.stdout.splitlines() == [f"0-0 {i * SIZE} p1-{i:06d}" for i in range(4, 10)]

    again = run(consume, TOPIC, "-g", "cli", "-z", filled.connect, "--from-beginning", "-n", "1", "--json")
    assert json.loads(again.stdout) == {
        "topic": TOPIC, "partition": "0-0", "offset": 0, "next_offset": SIZE, "payload": "p1-000000",
    }  # fmt: skip


def test_a_group_of_ones_own_leaves_nothing_behind(filled: Arena) -> None:
    """Without --group a group of its own reads everything and is removed afterwards (docs/consumer.md)."""
    before = filled.registry.groups()
    out = run(consume, "--whitelist", "ord.*", "-z", filled.connect, "--from-beginning", "-n", "10")
    assert len(out.stdout.splitlines()) == 10, out.output
    assert filled.registry.groups() == before


def test_consume_by_offset_needs_no_zookeeper(filled: Arena) -> None:
    """By offset, from one broker: the last three messages (§3.1)."""
    broker = filled.brokers[0].address
    out = run(consume, TOPIC, "--offset", "-3", "-b", broker, "-n", "3", "-z", "127.0.0.1:1")
    assert out.stdout.splitlines() == ["p1-000007", "p1-000008", "p1-000009"], out.output


def test_group_list_and_describe_tell_owner_offset_and_lag(filled: Arena) -> None:
    """Owner, stored offset, end of the log and lag in bytes of each partition (§3.2)."""
    with Consumer(filled.connect, "billing", autocommit=False, timeout_s=60) as consumer:
        stream = consumer.create_message_streams(TOPIC)[0]
        for _ in range(4):
            next(stream)
        consumer.commit()
        listed = json.loads(run(group, "list", "-z", filled.connect, "--json").stdout)
        assert ("billing", 1, TOPIC) in [(row["group"], row["members"], row["topics"]) for row in listed]
        (row,) = json.loads(run(group, "describe", "billing", "-z", filled.connect, "--json").stdout)
        assert row["owner"] == f"{consumer.consumer_id}-0"
        assert (row["offset"], row["log_end"], row["lag_bytes"]) == (4 * SIZE, 10 * SIZE, 6 * SIZE)
    missing = run(group, "describe", "nobody", "-z", filled.connect)
    assert missing.exit_code == 1 and "no group is called 'nobody'" in missing.output


def test_lag_in_seconds_where_events_carry_a_time(filled: Arena) -> None:
    """For events of a registered schema, lag is also the age of the next message to read (§4)."""
    schemas = ZooKeeperSchemaRegistry(filled.registry.registry)
    fields = [{"name": "timestamp", "type": "long"}]
    number = schemas.register("events", {"type": "record", "name": "Event", "fields": fields})
    hour_ago = SYSTEM_CLOCK.wall_ms() - 3_600_000
    broker = filled.brokers[0]
    with BrokerConnection(broker.host, broker.port) as connection:
        data = encode_set([schemas.encode(number, {"timestamp": hour_ago})])
        connection.produce_acked("events", 0, data, AckLevel.FLUSHED)
    until(lambda: filled.registry.brokers.partitions("events"), "the topic is announced")
    OffsetRegistry(filled.registry.registry, "dated").write("events", {BrokerPartition(0, 0): 0})

    (row,) = json.loads(run(group, "describe", "dated", "-z", filled.connect, "--json").stdout)
    assert row["lag_bytes"] == len(data)
    assert row["lag_s"] >= 3600


def test_watch_tells_what_changed(filled: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """``describe --watch`` names what the members rebalance for (§3.2)."""
    path = paths.consumer_id("watched", "watched_c2")
    filled.registry.registry.perform(Create(paths.consumer_id("watched", "watched_c1"), b"{ }", make_parents=True))
    deeds = [Create(path, b'{ "orders": 1 }'), Delete(path)]

    class Clock:
        def sleep(self, seconds: float) -> None:
            if not deeds:
                raise KeyboardInterrupt
            filled.registry.registry.perform(deeds.pop(0))

    monkeypatch.setattr(consumers.cli.group, "SYSTEM_CLOCK", Clock())
    told = run(group, "describe", "watched", "-z", filled.connect, "--watch").stderr

    assert [line for line in told.splitlines() if "since" in line] == [
        "since the last look: member watched_c2 joined", "since the last look: member watched_c2 is gone"
    ]  # fmt: skip


def test_seek_shows_a_plan_and_executes_exactly_it(filled: Arena) -> None:
    """Nothing changes without --execute; every way to say where; refused while the group is alive (§3.1)."""
    run(consume, TOPIC, "-g", "seeker", "-z", filled.connect, "-n", "6")

    def seek(*arguments: str) -> Result:
        return run(group, "seek", "seeker", "-z", filled.connect, "--json", *arguments)

    def stored() -> int | None:
        rows = filled.registry.describe("seeker") or []
        return rows[0].offset

    plan = seek("--to", "start")
    assert plan.exit_code == 0 and "NOTHING WAS CHANGED" in plan.stderr
    assert json.loads(plan.stdout) == [
        {"topic": TOPIC, "partition": "0-0", "old": 6 * SIZE, "new": 0, "why": "the first message there is"}
    ]
    assert stored() == 6 * SIZE

    for to, expected in (("-2", 4), ("+3", 7), ("+99", 10), ("-99", 0), ("end", 10), ("start", 0), ("@0", 0)):
        assert seek("--to", to, "--execute").exit_code == 0
        assert stored() == expected * SIZE, to
    assert seek("--to", str(3 * SIZE), "--execute").exit_code == 0
    assert stored() == 3 * SIZE
    for nonsense in ("sideways", "@yesterday", "@", "+-3", ""):
        assert seek("--to", nonsense).exit_code == 2, nonsense
    inside = seek("--to", str(3 * SIZE + 5), "--execute")
    assert inside.exit_code == 1 and "no message" in str(inside.exception) and stored() == 3 * SIZE

    with Consumer(filled.connect, "seeker", autocommit=False) as consumer:
        consumer.create_message_streams(TOPIC)
        refused = seek("--to", "end", "--execute")
        assert refused.exit_code == 1 and "has members" in str(refused.exception)
        assert stored() == 3 * SIZE
    out = run(consume, TOPIC, "-g", "seeker", "-z", filled.connect, "-n", "1")
    assert out.stdout.splitlines() == ["p1-000003"]


@pytest.mark.parametrize(
    ("word", "messages"),
    [("@0", 0), ("@2011-06-12", 0), ("@2011-06-12T09:00", 0), ("@2999-01-01T00:00+02:00", 10), ("@32472144000000", 10)],
)
def test_a_time_means_to_seek_what_it_means_to_fetch(filled: Arena, word: str, messages: int) -> None:
    """A group goes where ``fetch --offset`` with the same words begins: ISO time or ms, to the segment (§3.1)."""
    broker = filled.brokers[0]
    with BrokerConnection(broker.host, broker.port) as connection:
        fetched = find_start(connection, TOPIC, 0, word, 1 << 20).offset
    plan = run(group, "seek", "timed", "-z", filled.connect, "--json", "--topic", TOPIC, "--to", word)

    assert json.loads(plan.stdout)[0]["new"] == fetched == messages * SIZE


def test_offsets_leave_and_come_back_in_the_format_of_0_7(filled: Arena, tmp_path: Path) -> None:
    """Exported lines are 0.7's, and importing them restores the group (docs/consumer.md)."""
    run(consume, TOPIC, "-g", "keeper", "-z", filled.connect, "-n", "6")
    exported = run(offsets, "export", "-z", filled.connect, "--group", "keeper")
    assert exported.stdout == f"/consumers/keeper/offsets/{TOPIC}/0-0:{6 * SIZE}\n"

    run(group, "seek", "keeper", "-z", filled.connect, "--to", "start", "--execute")
    kept = tmp_path / "offsets"
    kept.write_text(exported.stdout)
    assert run(offsets, "import", str(kept), "-z", filled.connect).exit_code == 0
    assert [row.offset for row in filled.registry.describe("keeper") or []] == [6 * SIZE]

    kept.write_text(exported.stdout + "rubbish\n")
    bad = run(offsets, "import", str(kept), "-z", filled.connect)
    assert bad.exit_code == 1 and "line 2" in bad.output
