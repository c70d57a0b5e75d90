"""Offsets that outlive their coordinator: two brokers with logs of their own, copying through one ZooKeeper.

The brokers' coordinators, logs and copiers are real; ZooKeeper is the fake one, and every step is taken by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.group_protocol.coordinator.requests import (
    ConsumerGroupHeartbeat,
    DeleteGroups,
    Heartbeat,
    OffsetCommit,
    OffsetToCommit,
)
from consumers.group_protocol.error_codes import ErrorCode
from kafka2011.clock import ManualClock
from tests.unit.group_protocol.offices_bench import ALL, HERE, NOTHING, Broker, copies
from zk_registry import operations as ops
from zk_registry.fake import FakeZooKeeper


@pytest.fixture
def world() -> FakeZooKeeper:
    return FakeZooKeeper()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def two(world: FakeZooKeeper, tmp_path: Path, clock: ManualClock) -> Iterator[tuple[Broker, Broker]]:
    """Broker 1 coordinates g, 2 is there."""
    one, other = (Broker(world, number, tmp_path / str(number), clock) for number in (1, 2))
    one.offices.want(ALL)
    one.turn()
    yield one, other
    for each in (one, other):
        each.log.close()


def test_a_commit_is_answered_first_and_copied_after(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """With offsets.commit.required.acks=1: the answer waits for our own disk and for nothing else; the copy waits for
    the disk, too. Spec §11."""
    one, _ = two
    one.commit(5)
    one.groups.slow = True
    assert one.commit(6) is None
    position = one.log.flush(HERE)
    assert one.commit(7) is None
    one.turn()
    assert copies(world) == {0: 5}
    one.offices.flushed(position)
    one.turn()
    assert copies(world) == {0: 6}
    one.groups.slow = False
    one.session.suspend()
    one.groups.deliver(())
    assert one.committed() == 7
    assert copies(world) == {0: 6}
    one.session.resume()
    one.turn()
    assert copies(world) == {0: 7}


@pytest.mark.parametrize("end", ["dies", "resigns"])
def test_the_next_coordinator_goes_on_there(two: tuple[Broker, Broker], end: str) -> None:
    """What was committed and copied is where the group goes on, note and all; adopted into a log of its own (§3.2)."""
    one, other = two
    one.commit(7)
    if end == "dies":
        one.turn()
        one.die()
    else:
        one.offices.want(NOTHING)
    other.offices.want(ALL)
    assert other.groups.is_loading("g")
    if end == "resigns":
        other.turn()
        assert other.groups.is_loading("g"), "the claim is still the first's"
        one.turn()
    other.turn()
    assert other.committed() == 7
    (adopted,) = [e.event for e in other.journal.since() if e.event.name == "offsets_adopted"]
    assert (adopted.n_groups, adopted.n_offsets) == (1, 1)  # type: ignore[attr-defined]
    assert len(other.log.latest(HERE)) == 1
    assert other.log.unflushed() == []


def test_a_commit_on_its_way_to_disk_is_handed_over(two: tuple[Broker, Broker]) -> None:
    """It will be answered as done, so the claim is kept until it is copied; also when a thread has flushed it already
    and nobody has been told. §3.3."""
    one, other = two
    one.groups.slow = True
    answers: list[object] = []
    offsets = (OffsetToCommit("t", 0, 7, 0, "note"),)
    one.groups.ask(OffsetCommit("g", -1, "", offsets, version=7), object).addCallback(answers.append)
    position = one.log.flush(HERE)
    one.offices.want(NOTHING)
    other.offices.want(ALL)
    one.turn()
    other.turn()
    assert other.groups.is_loading("g")
    one.offices.flushed(position)
    one.groups.deliver(one.groups.coordinator.flushed(position, 0.0))
    assert [each.partitions[0].error for each in answers] == [ErrorCode.NONE]  # type: ignore[attr-defined]
    one.turn()
    other.turn()
    assert other.committed() == 7


def test_the_old_one_returns_and_knows_the_newer(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """Dead, replaced, back: its own log is older than what was committed meanwhile, and gives way (§3.2)."""
    one, other = two
    one.commit(7)
    one.commit(70, partition=1)
    one.turn()
    one.die()
    other.offices.want(ALL)
    other.turn()
    other.commit(8)
    other.turn()
    one.start(ALL)
    one.copier.round()
    assert one.groups.is_loading("g")
    other.commit(9)  # before it has heard of the return
    other.offices.want(NOTHING)
    assert other.groups.coordinator.groups() == {}
    other.turn()
    one.turn()
    assert (one.committed(), one.committed(1)) == (9, 70)
    assert one.commit(10).partitions[0].error is ErrorCode.NONE  # type: ignore[attr-defined]
    one.turn()
    assert copies(world) == {0: 10, 1: 70}


def test_what_was_not_copied_is_repeated_and_comes_back(two: tuple[Broker, Broker]) -> None:
    """Acknowledged but not copied when it dies: the other begins a little earlier, never later; and if it commits
    nothing itself, the old one's own word counts when it is back. §3.3, at least once."""
    one, other = two
    one.commit(7)
    one.turn()
    one.commit(8)
    one.die()
    other.offices.want(ALL)
    other.turn()
    assert other.committed() == 7
    other.offices.want(NOTHING)
    other.turn()
    one.start(ALL)
    one.turn()
    assert one.committed() == 8
    one.turn()
    one.die()
    other.offices.want(ALL)
    other.turn()
    assert other.committed() == 8


def test_a_slow_clock_commits_later_all_the_same(two: tuple[Broker, Broker]) -> None:
    """The interim coordinator's clock is an hour behind: its commits still count as the later ones."""
    one, other = two
    one.commit(7)
    one.turn()
    one.die()
    slow = ManualClock(one.clock.wall_ms() - 3_600_000)
    other.log.close()
    other.clock = slow
    other.start(ALL)
    other.turn()
    other.commit(8)
    other.turn()
    other.die()
    one.start(ALL)
    one.turn()
    assert one.committed() == 8


def test_deletion_reaches_the_copies(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """A deleted group is deleted for every coordinator; expiry writes the same tombstones. Spec §11."""
    one, other = two
    one.commit(7)
    one.turn()
    one.ask(DeleteGroups(("g",)))
    one.turn()
    assert copies(world) == {}
    one.die()
    other.offices.want(ALL)
    other.turn()
    assert other.committed() == -1


def test_expired_offsets_leave_no_copy(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """After the retention the copies go with the offsets. Spec §11."""
    one, _ = two
    one.commit(7)
    one.turn()
    one.clock.advance(8 * 24 * 3600)
    one.turn()
    one.turn()
    one.groups.deliver(one.groups.coordinator.tick(one.clock.monotonic()))
    one.turn()
    assert copies(world) == {}


def test_a_tombstone_that_was_not_copied_is_not_undone(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """Deleted, then killed before the copy was: the copy is deleted at the next start, not adopted. Spec §11."""
    one, _ = two
    one.commit(7)
    one.turn()
    one.ask(DeleteGroups(("g",)))
    one.die()
    one.start(ALL)
    one.turn()
    assert one.committed() == -1
    one.turn()
    assert copies(world) == {}


def test_offsets_from_before_there_were_copies_are_copied(tmp_path: Path, world: FakeZooKeeper) -> None:
    """A log written without ZooKeeper, or while it was away, is copied when its partition is taken."""
    clock = ManualClock()
    one = Broker(world, 1, tmp_path / "1", clock)
    one.offices.want(ALL)
    one.turn()
    one.session.suspend()
    one.commit(7)
    one.die()
    assert copies(world) == {}
    one.start(ALL)
    one.turn()
    one.turn()
    assert (one.committed(), copies(world)) == (7, {0: 7})
    one.log.close()


def test_a_restart_alone_keeps_the_members(two: tuple[Broker, Broker]) -> None:
    """Nobody else coordinated meanwhile: members, generation and assignment are as they were. Spec §11."""
    one, _ = two
    member = one.join("i")
    one.turn()
    one.die()
    one.start(ALL)
    one.turn()
    assert one.ask(Heartbeat("g", 1, member, "i")).error is ErrorCode.NONE  # type: ignore[attr-defined]


def test_a_static_member_is_not_fenced_by_its_own_past(two: tuple[Broker, Broker]) -> None:
    """Back from the other coordinator under another id, it is asked to join again, not fenced for ever. Spec §7."""
    one, other = two
    one.join("i")
    one.turn()
    one.die()
    other.offices.want(ALL)
    other.turn()
    there = other.join("i")
    other.turn()
    for _ in range(2):  # also after another restart
        one.start(ALL)
        other.offices.want(NOTHING)
        other.turn()
        one.turn()
        error = one.ask(Heartbeat("g", 1, there, "i")).error  # type: ignore[attr-defined]
        assert error is ErrorCode.UNKNOWN_MEMBER_ID
        one.die()
    one.start(ALL)
    one.turn()
    member = one.join("i")
    assert one.commit(5, member, 1).partitions[0].error is ErrorCode.NONE  # type: ignore[attr-defined]


def test_kip_848_groups_move_with_their_offsets(two: tuple[Broker, Broker]) -> None:
    """A commit by epoch is where the group goes on at the other broker; the member joins there anew. Spec §12."""
    one, other = two

    def heartbeat(broker: Broker, epoch: int) -> object:
        topics = ("t",) if epoch == 0 else None
        return broker.ask(ConsumerGroupHeartbeat("g", "m", epoch, rebalance_ms=30_000, topics=topics, owned=()))

    epoch = heartbeat(one, 0).epoch  # type: ignore[attr-defined]
    assert one.commit(7, "m", epoch).partitions[0].error is ErrorCode.NONE  # type: ignore[attr-defined]
    one.turn()
    one.die()
    other.offices.want(ALL)
    other.turn()
    assert other.committed() == 7
    assert heartbeat(other, epoch).error is ErrorCode.UNKNOWN_MEMBER_ID  # type: ignore[attr-defined]
    assert heartbeat(other, 0).error is ErrorCode.NONE  # type: ignore[attr-defined]


def test_a_session_that_ends_alone_disturbs_nobody(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """Expired and claimed again before anybody came: 14 for a moment, then members and offsets as they were (§3.2)."""
    one, _ = two
    member = one.join()
    one.commit(7, member, 1)
    one.turn()
    one.session.expire()
    one.commit(8, member, 1)  # it does not know yet
    with pytest.raises(ops.SessionExpired):
        one.turn()
    with pytest.raises(ops.SessionExpired):
        one.turn()
    assert one.groups.is_loading("g")
    one.session.resume()
    one.turn()
    assert not one.groups.is_loading("g")
    assert one.ask(Heartbeat("g", 1, member)).error is ErrorCode.NONE  # type: ignore[attr-defined]
    assert one.committed() == 8
    one.turn()
    assert copies(world) == {0: 8}


def test_a_session_that_ended_is_not_the_last_word(two: tuple[Broker, Broker], world: FakeZooKeeper) -> None:
    """Another broker coordinated while the first was stopped: the first forgets its members and takes the newer offsets
    before it speaks again (§3.2)."""
    one, other = two
    member = one.join()
    one.commit(7, member, 1)
    one.turn()
    one.commit(8, member, 1)
    one.session.expire()
    other.offices.want(ALL)
    other.turn()
    other.commit(9)
    other.offices.want(NOTHING)
    other.turn()
    other.turn()
    one.session.resume()
    one.turn()
    assert one.committed() == 9
    one.turn()
    assert copies(world) == {0: 9}
    assert one.ask(Heartbeat("g", 1, member)).error is ErrorCode.UNKNOWN_MEMBER_ID  # type: ignore[attr-defined]


def test_a_report_that_comes_too_late_is_passed_over(two: tuple[Broker, Broker]) -> None:
    """Lost again before the claim's report arrived: nothing is loaded."""
    one, other = two
    one.commit(7)
    one.offices.want(NOTHING)
    one.turn()
    late: list[tuple[object, ...]] = []
    other.copier._call = lambda function, *values: late.append((function, *values))
    other.offices.want(ALL)
    other.turn()
    other.offices.want(NOTHING)
    for function, *values in late:
        function(*values)  # type: ignore[operator]
    assert other.groups.coordinator.groups() == {}
    assert other.log.latest(HERE) == []
