"""A coordinator cut off from ZooKeeper: it answers no commit that others will not see, and falls silent in time.

Issue 19 B11: up to 357 commits were acknowledged that the next coordinator did not know. Design D22.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from consumers.group_protocol.coordinator.requests import (
    Heartbeat,
    JoinGroup,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    Protocol,
)
from consumers.group_protocol.error_codes import ErrorCode
from kafka2011.clock import ManualClock
from kafka2011.types import TopicPartition
from tests.unit.group_protocol.offices_bench import ALL, Broker, copies
from zk_registry import operations as ops
from zk_registry.fake import FakeZooKeeper

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def world(clock: ManualClock) -> FakeZooKeeper:
    return FakeZooKeeper(clock=clock)


@pytest.fixture
def two(world: FakeZooKeeper, tmp_path: Path, clock: ManualClock) -> Iterator[tuple[Broker, Broker]]:
    """Broker 1 coordinates g, 2 is there; commits wait for their copies, as they do by default."""
    one, other = (Broker(world, n, tmp_path / str(n), clock, wait_for_copies=True) for n in (1, 2))
    one.offices.want(ALL)
    one.turn()
    yield one, other
    for each in (one, other):
        each.log.close()


class Committer:
    """Commits, and writes down what it was told."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.told: dict[int, ErrorCode] = {}

    def commit(self, offset: int) -> None:
        def answered(answer: object) -> None:
            self.told[offset] = answer.partitions[0].error  # type: ignore[attr-defined]

        offsets = (OffsetToCommit("t", 0, offset, 0, "note"),)
        self._broker.groups.ask(OffsetCommit("g", -1, "", offsets, version=7), object).addCallback(answered)

    @property
    def acknowledged(self) -> list[int]:
        return [offset for offset, error in self.told.items() if not error]


def test_a_commit_is_answered_once_it_is_copied(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """On disk here and where the next coordinator looks; then, and not before. Fetches see it from then on."""
    one, _ = two
    committer = Committer(one)
    committer.commit(5)
    assert (committer.told, copies(world), one.committed()) == ({}, {}, -1)
    one.turn()
    assert (committer.told, copies(world), one.committed()) == ({5: ErrorCode.NONE}, {0: 5}, 5)


def test_no_acknowledged_commit_is_unknown_to_the_next(two: tuple[Broker, Broker], clock: ManualClock) -> None:
    """Cut off in mid-traffic, it goes on being asked all the time until another coordinates: what it has acknowledged,
    the other knows."""
    one, other = two
    committer = Committer(one)
    for offset in range(10):
        committer.commit(offset)
        one.turn()
    one.session.suspend()
    for offset in range(10, 60):
        committer.commit(offset)
        one.pass_time(0.25)
        with suppress(ops.ConnectionLoss):
            one.copier.round()
    one.session.expire()
    other.offices.want(ALL)
    other.turn()
    assert other.committed() == max(committer.acknowledged) == 9
    assert set(committer.told) == set(range(60)), "everybody was told something in time"
    assert {error for error in committer.told.values() if error} == {NOT_AVAILABLE}


def test_it_falls_silent_before_its_session_can_be_over(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """Of a session of 6 s: after 5 s without an answer offsets are not told and members not served, and an event says
    so; the server still holds the claim."""
    one, _ = two
    member = one.join()
    one.turn()
    one.session.suspend()
    one.pass_time(4.8)
    assert one.ask(Heartbeat("g", 1, member)).error is ErrorCode.NONE  # type: ignore[attr-defined]
    one.pass_time(0.3)
    world.tick()
    assert world.session().perform(ops.Get(f"/kafka2011/groups/coordinators/{min(ALL)}")), "the claim is there yet"
    assert one.ask(Heartbeat("g", 1, member)).error is NOT_AVAILABLE  # type: ignore[attr-defined]
    assert one.ask(OffsetFetch("g", (TopicPartition("t", 0),))).error is NOT_AVAILABLE  # type: ignore[attr-defined]
    protocols = (Protocol("range", b""),)
    joining = JoinGroup("g", 10_000, 30_000, "", "consumer", protocols, None, "c", "/h", 3)
    assert one.ask(joining).error is NOT_AVAILABLE  # type: ignore[attr-defined]
    one.pass_time(0.25)
    assert one.offices.state()["silenced"] == sorted(ALL)
    assert [e.event.name for e in one.journal.since() if "silenced" in e.event.name] == ["coordinator_silenced"]


def test_members_survive_a_silence(two: tuple[Broker, Broker]) -> None:
    """Nobody is put out for not being heard while nobody was listened to: after a silence longer than its session, but
    in the same session with ZooKeeper, the member goes on, with a whole session to say so."""
    one, _ = two
    member = one.join()
    one.turn()
    one.session.suspend()
    for _ in range(30):
        one.pass_time(1)
        one.groups.deliver(one.groups.coordinator.tick(one.timers.seconds()))
    one.session.resume()
    one.copier.round()
    one.pass_time(0.25)
    assert one.offices.state()["silenced"] == []
    one.pass_time(9)
    one.copier.round()
    one.pass_time(0.25)
    assert one.ask(Heartbeat("g", 1, member)).error is ErrorCode.NONE  # type: ignore[attr-defined]
    assert "coordinator_back" in [e.event.name for e in one.journal.since()]


def test_a_new_session_alone_gives_nothing_back(two: tuple[Broker, Broker]) -> None:
    """The session is over and a new one answers, but its claims are not made yet: still nobody is served."""
    one, other = two
    member = one.join()
    one.turn()
    one.session.expire()
    other.offices.want(ALL)
    other.turn()
    with pytest.raises(ops.SessionExpired):
        one.turn()
    one.session.resume()
    one.turn()  # claims again, and finds that another has it
    assert one.groups.is_loading("g")
    one.offices._loading.clear()  # whatever else would refuse it
    assert one.ask(Heartbeat("g", 1, member)).error is NOT_AVAILABLE  # type: ignore[attr-defined]
