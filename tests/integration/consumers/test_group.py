"""Consumer processes on a real ZooKeeper and real brokers, judged by the history checker."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from kafka2011.types import BrokerPartition
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.integration.consumers.line import Line
from tests.waiting import until
from zk_registry import paths
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import Children


def ids(arena: Arena) -> list[str]:
    return arena.registry.members(arena.group)


def test_members_come_and_go_in_peace_and_every_message_is_delivered_once(arena: Arena) -> None:
    """With clean joins and leaves under load: everything is delivered, in order, exactly once (§3.2)."""
    arena.broker(0)
    arena.broker(1)
    arena.send_everywhere()
    arena.join("c1")
    arena.wait_shared(4, 1)
    arena.produce_all_the_time()
    arena.join("c2")
    arena.wait_shared(4, 2)
    third = arena.join("c3")
    arena.wait_shared(4, 3)
    third.leave()
    arena.wait_shared(4, 2)
    arena.members["c1"].leave()
    arena.wait_shared(4, 1)
    arena.stop_producing()
    arena.wait_delivered()
    arena.members["c2"].leave()

    report = arena.check()
    assert report.valid, report
    assert not report.legal
    assert arena.polls("c1") and arena.polls("c2")
    assert ids(arena) == [] and arena.owners() == {}, "nothing is left behind"
    ends = {row.partition: row.lag for row in arena.registry.describe(arena.group) or []}
    assert set(ends.values()) == {0}, "and everything finished is committed"


def test_nothing_is_lost_through_kills_pauses_expiry_and_broker_death(arena: Arena) -> None:
    """kill -9, SIGSTOP past the session, a dead broker, growth: all delivered, duplicates only from §3.3 (§3.2)."""
    arena.broker(0)
    arena.broker(1)
    arena.send_everywhere()
    for name in ("c1", "c2"):
        arena.join(name)
    arena.wait_shared(4, 2)
    arena.produce_all_the_time()
    until(lambda: arena.polls("c1") > 20 and arena.polls("c2") > 20, "both are reading")

    # kill -9: the others take over when the session has timed out.
    arena.fault("kill", "c1")
    arena.members["c1"].process.kill()
    arena.members["c1"].process.wait()
    arena.wait_shared(4, 1)

    # SIGSTOP past the session: c2 becomes a zombie, c3 takes everything, c2 wakes up and must not disturb.
    arena.join("c3")
    arena.wait_shared(4, 2)
    before = set(ids(arena))
    arena.fault("pause", "c2")
    arena.members["c2"].signal(signal.SIGSTOP)
    arena.wait_shared(4, 1)
    seen = arena.polls("c3")
    until(lambda: arena.polls("c3") > seen + 20, "c3 reads on and commits")
    arena.members["c2"].signal(signal.SIGCONT)
    arena.wait_shared(4, 2)
    assert len(set(ids(arena)) - before) == 1, "the zombie came back under a new id"
    assert any(op["f"] == "reborn" for op in arena.ops(["c2"]))

    # A broker dies and comes back: its partitions wait, the others go on.
    arena.fault("broker-kill", "b1")
    arena.brokers[1].kill()
    arena.wait_shared(2, 2)
    arena.brokers[1].restart()
    arena.wait_shared(4, 2)

    # The topic grows onto a new broker.
    arena.broker(2)
    arena.wait_shared(6, 2)

    arena.stop_producing()
    arena.wait_delivered()
    report = arena.check(at_rest=True)
    assert report.valid, report


def test_a_group_of_two_editions_settles_after_every_change(zk_connect: str, tmp_path: Path) -> None:
    """Members of `sound` and of `shipped`, more partitions than ten and no multiple of the members, kills of either:
    every partition is owned by exactly one after each change, and all is delivered (Issue 19 A5)."""
    arena = Arena(zk_connect, tmp_path, session_s=1.5)
    try:
        arena.broker(0, partitions=11)
        arena.send_everywhere()
        for n, (name, edition) in enumerate((("c1", "sound"), ("c2", "shipped"), ("c3", "sound"))):
            arena.join(name, edition=edition)
            arena.wait_shared(11, n + 1)
        arena.produce_all_the_time()
        for name, n in (("c2", 2), ("c1", 1)):
            arena.fault("kill", name)
            arena.members[name].process.kill()
            arena.members[name].process.wait()
            arena.wait_shared(11, n)
        arena.stop_producing()
        arena.wait_delivered()
    finally:
        arena.close()


def test_a_consumer_cut_off_alone_stops_before_others_take_over(
    zk_connect: str, zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    """A consumer that no longer hears ZooKeeper delivers nothing that another may be reading already (§3.2)."""
    arena = Arena(zk_connect, tmp_path, session_s=6.0)
    try:
        with Line(zookeeper.servers[0].port) as line:
            arena.broker(0)
            arena.send_everywhere()
            arena.join("c1", f"{line.address}/{zk_connect.partition('/')[2]}")
            arena.wait_shared(2, 1)
            arena.join("c2")
            arena.wait_shared(2, 2)
            arena.produce_all_the_time()
            until(lambda: arena.polls("c1") > 20 and arena.polls("c2") > 20, "both are reading")

            def since_the_cut(name: str) -> list[tuple[str, int]]:
                return [(op["key"], op["t"]) for op in arena.ops([name]) if op["f"] == "poll" and op["t"] > cut]

            cut = time.monotonic_ns()
            line.cut()
            arena.wait_shared(2, 1)
            until(lambda: len({key for key, _ in since_the_cut("c2")}) == 2, "c2 reads everything")
            (theirs,) = {key for key, _ in since_the_cut("c1")}
            last = max(t for _, t in since_the_cut("c1"))
            first = min(t for key, t in since_the_cut("c2") if key == theirs)

            assert last < first, f"for {(last - first) / 1e9:.2f} s both delivered {theirs}"
    finally:
        arena.close()


def test_an_expired_session_is_a_new_life(arena: Arena) -> None:
    """A consumer whose ZooKeeper session is ended registers anew and reads on; nothing is lost (§3.2)."""
    from consumers import Consumer
    from consumers.events import SessionLost
    from zk_registry.session import ZooKeeperSession
    from zk_registry.testing import expire

    arena.broker(0)
    arena.send_everywhere()
    session = ZooKeeperSession(arena.connect, timeout_s=6.0)
    with Consumer(session, arena.group, autocommit_interval_s=0.2) as consumer:
        stream = consumer.create_message_streams(TOPIC)[0]
        stream.timeout_s = 60.0
        seen = [next(stream).payload.decode() for _ in range(len(arena.sent))]
        old = consumer.consumer_id
        expire(arena.connect, session.session_id, session.password)
        until(lambda: any(isinstance(e.event, SessionLost) for e in consumer.journal.since()), "the loss is noticed")
        until(lambda: len(arena.owners()) == 2, "it owns everything again")
        arena.send_everywhere()
        while not arena.sent <= set(seen):
            seen.append(next(stream).payload.decode())
        assert consumer.consumer_id != old
        assert set(arena.owners().values()) == {consumer.consumer_id}


def test_one_group_shares_and_two_groups_each_get_everything(arena: Arena) -> None:
    """Within a group each message goes to one consumer; every group gets all messages (§3.2)."""
    from consumers import Consumer

    arena.broker(0, partitions=3)
    arena.send_everywhere()
    for group in ("one", "two"):
        with Consumer(arena.connect, group, timeout_s=60.0) as consumer:
            streams = consumer.create_message_streams(TOPIC, 3)
            until(lambda consumer=consumer: len(consumer.owned) == 3, "three partitions")  # type: ignore[misc]
            seen = []
            for stream in streams:
                seen += [next(stream) for _ in range(5)]
            assert {m.payload.decode() for m in seen} == arena.sent
            assert len(seen) == len(arena.sent)
            assert {m.partition for m in seen} == {BrokerPartition(0, n) for n in range(3)}
    assert arena.registry.registry.perform(Children(paths.CONSUMERS)) == ("one", "two")
