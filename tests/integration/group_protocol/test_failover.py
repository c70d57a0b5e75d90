"""The coordinator dies, and comes back: its groups go on from what they committed.

Paper: §3.2 (offsets are kept in ZooKeeper). Spec: modern-group-protocol §3.6, §3.7, §11.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumers.cli.group import group as group_command
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.member import Member, Message
from consumers.group_protocol.member.errors import CommitRefused
from kafka2011.types import BrokerAddress, TopicPartition
from tests.integration.consumers.line import Line
from tests.integration.group_protocol.failover import MOVING, FailoverCluster
from tests.integration.group_protocol.test_member import Diary
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.testing import fresh_chroot

ODD = ["a/b c", "..", "ü", "%2F", "x" * 249]


def test_three_brokers_one_killed(zk_connect: str, tmp_path: Path) -> None:
    """Every group of the dead broker is found at one of the others with offset and note, whatever its name; when the
    broker is back, with what was committed meanwhile (§3.2)."""
    with FailoverCluster(zk_connect, tmp_path, 3) as cluster:
        groups = [*(f"group-{n}" for n in range(40)), *ODD]
        homes = {group: cluster.coordinator(group) for group in groups}
        for n, group in enumerate(groups):
            assert cluster.commit(homes[group], group, n) == 0
        cluster.copied(1)
        cluster.brokers[1].kill()
        until(lambda: all(cluster.coordinator(group) != 1 for group in groups), "nobody names the dead one")
        moved = [group for group in groups if homes[group] == 1]
        heirs = {group: cluster.coordinator(group) for group in moved}
        assert {2, 3} == set(heirs.values())
        for group in moved:
            assert cluster.committed(heirs[group], group) == (groups.index(group), "note")
        for group in moved[::2]:
            assert cluster.commit(heirs[group], group, 1000) == 0
        cluster.brokers[1].restart()
        for group in groups:
            expected = 1000 if group in moved[::2] else groups.index(group)
            assert cluster.committed(homes[group], group) == (expected, "note")


def test_a_clean_stop_loses_nothing(zk_connect: str, tmp_path: Path) -> None:
    """However long the interval: a broker that stops copies everything before anyone else speaks for its groups, and so
    does one that hands over because another came back."""
    slow = {"offsets.copy.interval.ms": 3_600_000, "offsets.commit.required.acks": 1}
    with FailoverCluster(zk_connect, tmp_path, **slow) as cluster:
        groups = [group for n in range(60) if cluster.coordinator(group := f"g-{n}") == 1]
        for offset in range(3):
            for group in groups:
                assert cluster.commit(1, group, offset) == 0
        assert cluster.brokers[1].stop() == 0
        for group in groups:
            assert cluster.committed(2, group) == (2, "note")
            assert cluster.commit(2, group, 7) == 0
        assert "offsets_not_copied" not in cluster.brokers[1].output

        cluster.brokers[1].restart()
        acknowledged = dict.fromkeys(groups, 7)
        while len(acknowledged) > 0:
            # Commit at the interim coordinator until it refuses: the very last one it took counts.
            for group, last in list(acknowledged.items()):
                error = cluster.commit(2, group, last + 1)
                assert error in (0, *MOVING)
                if error:
                    del acknowledged[group]
                    assert cluster.committed(1, group)[0] == last
                else:
                    acknowledged[group] = last + 1


def test_a_coordinator_that_stood_still_gives_way(zk_connect: str, tmp_path: Path) -> None:
    """Paused beyond its session while another coordinates; afterwards it takes what was committed there (§3.2)."""
    with FailoverCluster(zk_connect, tmp_path) as cluster:
        group = cluster.group_of(1)
        assert cluster.commit(1, group, 10) == 0
        cluster.copied(1)
        cluster.brokers[1].pause()
        until(lambda: cluster.coordinator(group) == 2, "the other has noticed")
        assert cluster.committed(2, group) == (10, "note")
        assert cluster.commit(2, group, 20) == 0
        cluster.brokers[1].resume()
        until(lambda: cluster.coordinator(group) == 1, "it is back")
        until(lambda: cluster.fetch(1, group) == (0, 20, "note"), "it knows better")
        assert cluster.commit(1, group, 30) == 0
        cluster.copied(1)
        assert cluster.brokers[1].stop() == 0
        assert cluster.committed(2, group) == (30, "note")


def test_a_coordinator_cut_off_acknowledges_nothing_in_vain(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> None:
    """Its line to ZooKeeper falls silent under a stream of commits, and its clients still reach it: whatever it has
    acknowledged by then or later, the next coordinator knows from its first answer on (issue 19 B11)."""
    connect = fresh_chroot(zookeeper.connect)
    chroot = connect.partition("/")[2]
    with Line(zookeeper.servers[0].port) as line, FailoverCluster(
        connect, tmp_path, first_connect=f"{line.address}/{chroot}", **{"offsets.commit.timeout.ms": 500}
    ) as cluster:
        group = cluster.group_of(1)
        told: list[int] = []
        over = threading.Event()

        def stream() -> None:
            while not over.is_set():
                told.append(cluster.commit(1, group, len(told)))

        streaming = threading.Thread(target=stream)
        streaming.start()
        try:
            until(lambda: len(told) > 50, "commits flow")
            n_before = len(told)
            line.cut()
            found, _ = until(
                lambda: (answer := cluster.fetch(2, group))[0] == 0 and answer[1:], "the other coordinates"
            )
            n_then = len(told)
            until(lambda: len(told) > n_then + 5, "the old one is asked on")
        finally:
            over.set()
            streaming.join()
        acknowledged = [offset for offset, error in enumerate(told) if not error]
        assert len(acknowledged) >= n_before - 1, "before the cut all were taken"
        assert found >= max(acknowledged)
        assert cluster.coordinator(group, asked=2) == 2
        assert {error for error in told if error} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert cluster.offsets(1)["coordinates"] == []
        assert "coordinator_silenced" in cluster.brokers[1].output


def test_commits_need_not_wait_for_zookeeper(tmp_path: Path) -> None:
    """With offsets.commit.required.acks=1, and while ZooKeeper stands still for less than a session, commits are
    answered as before; the copies follow when it goes on. Spec §3.6."""
    quick = {"offsets.commit.required.acks": 1, "zk.sessiontimeout.ms": 20_000}
    with EmbeddedZooKeeper() as zookeeper, FailoverCluster(zookeeper.connect, tmp_path, **quick) as cluster:
        group = cluster.group_of(1)
        zookeeper.pause()
        for offset in range(200):
            assert cluster.commit(1, group, offset) == 0
        assert cluster.fetch(1, group) == (0, 199, "note")
        zookeeper.resume()
        cluster.copied(1)
        cluster.returned(1)
        cluster.brokers[1].kill()
        until(lambda: cluster.coordinator(group) == 2, "the other has noticed")
        assert cluster.committed(2, group) == (199, "note")


WAYS = [
    ("classic", {"assignor": "range"}),
    ("classic", {"assignor": "cooperative-sticky"}),
    ("classic", {"instance": "one"}),
    ("consumer", {}),
]


class Reader:
    """Our own member, and whether it was ever given what it had committed."""

    def __init__(self, cluster: FailoverCluster, group: str, **how: object) -> None:
        addresses = [BrokerAddress(number, each.host, each.port) for number, each in cluster.brokers.items()]
        modern = [("127.0.0.1", each.modern_port or 0) for each in cluster.brokers.values()]
        settings = {"heartbeat_ms": 100, "session_ms": 300_000, "auto_commit_s": None} | how
        self.member = Member(group, modern=modern, brokers=addresses, **settings)  # type: ignore[arg-type]
        self._cluster, self._diary = cluster, Diary()
        self.member.subscribe(["t"], self._diary)
        self.seen: list[Message] = []
        self.acknowledged: dict[int, int] = {}

    def read(self, done: Callable[[], object], what: str) -> None:
        """Poll until ``done``; nothing may come that was committed before."""

        def turn() -> object:
            for message in self.member.poll(0.05):
                assert message.offset >= self.acknowledged.get(message.partition, 0), "delivered again after its commit"
                self.seen.append(message)
            return done()

        until(turn, what)

    def has(self, published: list[bytes]) -> bool:
        return {message.payload for message in self.seen} >= set(published)

    def is_settled(self, n_times: int) -> bool:
        """Whether it was given partitions this often, and has read them to their ends since."""
        n_given = sum(what == "assigned" for what, _ in self._diary.entries)
        ends = {TopicPartition("t", number): end for number, end in self._cluster.ends.items()}
        is_all = self.member.assignment() == ends.keys()
        return n_given >= n_times and is_all and all(self.member.position(part) == end for part, end in ends.items())

    def commit(self) -> None:
        """Commit all, and hold the coordinator to it; a member that must join anew does that first."""
        positions = {m.partition: m.next_offset for m in self.seen}

        def committed() -> bool:
            try:
                self.member.commit({TopicPartition("t", number): offset for number, offset in positions.items()})
            except CommitRefused:
                self.member.poll(0.05)
                return False
            return True

        until(committed, "the commit is taken")
        self.acknowledged.update(positions)


def publish(cluster: FailoverCluster, mark: bytes) -> list[bytes]:
    """Ten messages to each partition."""
    some = [b"%s-%d" % (mark, n) for n in range(40)]
    for partition in range(4):
        cluster.publish(some[partition::4], partition)
    return some


@pytest.mark.parametrize(("protocol", "how"), WAYS, ids=["range", "cooperative", "static", "kip-848"])
def test_our_member_goes_on(zk_connect: str, tmp_path: Path, protocol: str, how: dict[str, str]) -> None:
    """Coordinator killed, replaced, back: nothing that was committed is delivered again, and nothing is left out. §3.3,
    at least once; spec §3, §7, §8, §12."""
    with FailoverCluster(zk_connect, tmp_path) as cluster:
        group = cluster.group_of(1)
        reader = Reader(cluster, group, protocol=protocol, **how)

        def members_at(number: int) -> object:
            groups = cluster.brokers[number].state()["plugins"]["modern"]["groups"]
            return groups.get(group, {}).get("members")

        published = [b"first", *publish(cluster, b"before")]
        reader.read(lambda: reader.has(published), "everything before")
        reader.commit()
        cluster.copied(1)
        cluster.brokers[1].kill()
        published += publish(cluster, b"dead")
        reader.read(lambda: reader.is_settled(2) and members_at(2), "everything, at the other coordinator")
        reader.commit()
        cluster.brokers[1].restart()
        reader.read(lambda: members_at(1), "the group is back")
        published += publish(cluster, b"back")
        reader.read(lambda: reader.is_settled(3), "everything after")
        assert reader.has(published)
        reader.commit()
        described = CliRunner().invoke(group_command, ["describe", group, "-z", zk_connect, "--json"])
        listed = CliRunner().invoke(group_command, ["list", "-z", zk_connect, "--json"])
        reader.member.close()
        assert described.exit_code == 0, described.output
        rows = json.loads(described.output)
        assert sum(row["lag_bytes"] for row in rows) == 0
        assert sum(row["offset"] for row in rows) == sum(len(payload) + 10 for payload in published)
        assert [(row["group"], row["members"]) for row in json.loads(listed.output)] == [(group, 1)]


def test_nothing_is_skipped(zk_connect: str, tmp_path: Path) -> None:
    """What was published while a group had no coordinator is read, though a member without offsets would begin at the
    end: the offsets are known (§3.2)."""
    with FailoverCluster(zk_connect, tmp_path) as cluster:
        group = cluster.group_of(1)
        first = Reader(cluster, group)
        first.read(lambda: first.has([b"first"]), "the first")
        # Every partition has an offset, also those nothing was read of.
        first.member.commit({TopicPartition("t", number): 0 for number in (1, 2, 3)})
        first.commit()
        first.member.close()
        cluster.copied(1)
        cluster.brokers[1].kill()
        published = publish(cluster, b"dead")
        second = Reader(cluster, group, reset="largest")
        second.read(lambda: second.has(published), "everything since")
        second.member.close()
        assert sorted(message.payload for message in second.seen) == sorted(published)
