"""The thread that copies offsets: what it writes, when, and what it does when ZooKeeper does not answer.

Most tests turn its rounds by hand, on a fake ZooKeeper and a clock that stands still.
"""

from __future__ import annotations

import threading

import pytest

from consumers.group_protocol.copier import TELL_AFTER_S, Copier
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from tests.unit.group_protocol.copier_desk import HERE, Desk, Heard, committed, stored
from tests.waiting import until
from zk_registry import operations as ops
from zk_registry.fake import FakeSession, FakeZooKeeper

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def world() -> FakeZooKeeper:
    return FakeZooKeeper()


def test_only_the_last_of_many_is_copied(world: FakeZooKeeper) -> None:
    """A thousand commits between two rounds are one write: last value wins (§3.2, offsets in ZooKeeper)."""
    desk = Desk(world)
    desk.hold()
    desk.copier.put(HERE, {("g", T0): committed(0)})
    desk.copier.round()
    desk.writes.clear()
    for offset in range(1_000):
        desk.copier.put(HERE, {("g", T0): committed(offset)})
    assert desk.copier.n_pending == 1
    assert desk.copier.round() == pytest.approx(0.5)
    assert (desk.writes, stored(world)) == ([], {T0: 0})
    desk.clock.advance(0.5)
    assert desk.copier.round() == pytest.approx(1.25), "a quarter of the lease, which the copy has renewed"
    assert (len(desk.writes), stored(world), desk.copier.n_pending) == (1, {T0: 999}, 0)


def test_what_did_not_change_is_not_written(world: FakeZooKeeper) -> None:
    """Without commits ZooKeeper is left alone; with one, only that offset is written."""
    desk = Desk(world)
    desk.hold()
    desk.copier.put(HERE, {("g", T0): committed(1), ("g", T1): committed(2)})
    desk.copier.round()
    desk.writes.clear()
    desk.clock.advance(10)
    desk.copier.round()
    assert desk.writes == []
    desk.copier.put(HERE, {("g", T1): committed(3)})
    desk.copier.round()
    (multi,) = desk.writes
    assert [op.path for op in multi.operations] == [f"/kafka2011/groups/{HERE}/g/t/1"]  # type: ignore[union-attr]


def test_a_tombstone_deletes_the_copy(world: FakeZooKeeper) -> None:
    """Deleted and expired offsets leave no copy behind; a tombstone also beats a value not written yet. Spec §11."""
    desk = Desk(world)
    desk.hold()
    desk.copier.put(HERE, {("g", T0): committed(1), ("g", T1): committed(1)})
    desk.copier.round()
    desk.clock.advance(1)
    desk.copier.put(HERE, {("g", T0): None, ("g", TopicPartition("u", 0)): committed(5)})
    desk.copier.put(HERE, {("g", TopicPartition("u", 0)): None})
    desk.copier.round()
    assert stored(world) == {T1: 1}


def test_while_zookeeper_is_away_the_last_of_each_is_kept(world: FakeZooKeeper) -> None:
    """Nothing is lost and nothing piles up: one value per offset, written when it is back; told once."""
    desk = Desk(world)
    desk.hold()
    desk.session.suspend()
    pauses = []
    for offset in range(1, 9):
        desk.copier.put(HERE, {("g", T0): committed(offset), ("g", T1): committed(offset)})
        with pytest.raises(ops.ConnectionLoss) as failure:
            desk.copier.round()
        pauses.append(desk.copier._failed(failure.value))
        desk.clock.advance(pauses[-1])
        assert desk.copier.n_pending == 2
    assert pauses == sorted(pauses)
    assert pauses[-1] == 2.0
    assert desk.told == ["copying_delayed"]
    desk.session.resume()
    desk.copier.round()
    assert (stored(world), desk.copier.n_pending, desk.heard.losses) == ({T0: 8, T1: 8}, 0, [])


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_asked_again(world: FakeZooKeeper, applied: bool) -> None:
    """ConnectionLoss means perhaps done: writing again ends in the same, for values and for tombstones."""
    desk = Desk(world)
    desk.hold()
    for change, left in ((committed(1), {T0: 1}), (committed(2), {T0: 2}), (None, {})):
        desk.copier.put(HERE, {("g", T0): change})
        desk.session.lose_reply(applied=applied)
        with pytest.raises(ops.ConnectionLoss):
            desk.copier.round()
        assert desk.copier.n_pending == 1
        desk.clock.advance(1)
        desk.copier.round()
        desk.clock.advance(1)
        assert (stored(world), desk.copier.n_pending) == (left, 0)


def test_what_comes_while_copying_is_not_taken_for_copied(world: FakeZooKeeper) -> None:
    """A commit that arrives during a write is written by the next one."""
    desk = Desk(world)
    desk.hold()
    plain = desk.session.perform

    def meanwhile(operation: ops.Operation, watcher: object = None) -> object:
        desk.session.perform = plain  # type: ignore[method-assign]
        desk.copier.put(HERE, {("g", T0): committed(2)})
        return plain(operation)

    desk.copier.put(HERE, {("g", T0): committed(1)})
    desk.session.perform = meanwhile  # type: ignore[method-assign, assignment]
    desk.copier.round()
    assert (stored(world), desk.copier.n_pending) == ({T0: 1}, 1)
    desk.clock.advance(1)
    desk.copier.round()
    assert stored(world) == {T0: 2}


def test_a_claim_is_given_up_after_the_last_copy(world: FakeZooKeeper) -> None:
    """The successor reads what the predecessor put, however little time there was (§3.2, ownership)."""
    one, two = Desk(world, 1), Desk(world, 2)
    one.hold()
    one.copier.settle(HERE)
    one.copier.put(HERE, {("g", T0): committed(1)})
    one.copier.round()
    two.copier.take(HERE, 7)
    assert two.copier.round() == 1.0
    assert (two.heard.takes, two.heard.n_tried) == ([], 1)
    one.copier.put(HERE, {("g", T0): committed(2)})
    one.copier.release(HERE)
    one.session.lose_reply(applied=False)
    with pytest.raises(ops.ConnectionLoss):
        one.copier.round()
    two.copier.round()
    assert two.heard.takes == []
    one.copier.round()
    world.deliver()
    assert two.copier._wake.is_set()  # the watch on the claims
    two.copier.round()
    assert two.heard.takes == [(HERE, 7, False)]
    assert two.heard.copies == {("g", T0): committed(2)}


def test_whoever_has_released_does_not_write(world: FakeZooKeeper) -> None:
    """What is put for a partition that is not ours is dropped: its log has it, and is read when it is ours again."""
    one = Desk(world, 1)
    one.hold()
    one.copier.release(HERE)
    one.copier.round()
    one.copier.put(HERE, {("g", T0): committed(2)})
    one.clock.advance(1)
    one.copier.round()
    assert (stored(world), one.copier.n_pending) == ({}, 0)


def test_a_release_repeated_does_not_take_anothers_claim(world: FakeZooKeeper) -> None:
    """The answer to a release was lost, another has the claim by now: it keeps it."""
    one, two = Desk(world, 1), Desk(world, 2)
    one.hold()
    one.copier.release(HERE)
    one.session.lose_reply(applied=True)
    with pytest.raises(ops.ConnectionLoss):
        one.copier.round()
    two.copier.take(HERE, 1)
    two.copier.round()
    one.copier.round()
    one.copier.take(HERE, 2)
    one.copier.round()
    assert [take[0] for take in two.heard.takes] == [HERE]
    assert one.heard.takes == [(HERE, 1, True)]


def test_a_session_that_is_over_ends_the_claims(world: FakeZooKeeper) -> None:
    """Nothing is written in the name of a claim of another session, and whoever wants it is told (§3.2)."""
    one, two = Desk(world, 1), Desk(world, 2)
    one.hold()
    one.copier.settle(HERE)
    one.copier.put(HERE, {("g", T0): committed(1)})
    one.copier.round()
    one.session.expire()
    two.copier.take(HERE, 1)
    two.copier.round()
    two.copier.put(HERE, {("g", T0): committed(5)})
    two.copier.round()
    one.copier.put(HERE, {("g", T0): committed(2)})
    one.clock.advance(1)
    with pytest.raises(ops.SessionExpired):
        one.copier.round()
    one.session.resume()
    one.copier.round()
    assert one.heard.losses == [frozenset({HERE})]
    assert stored(world) == {T0: 5}


def test_a_session_that_ends_in_mid_round_ends_the_writing(world: FakeZooKeeper) -> None:
    """Between two requests of one round the session is replaced: what was claimed in the old one is not written in the
    new (§3.2)."""
    one, two = Desk(world, 1), Desk(world, 2)
    one.hold()
    plain = one.session.perform

    def meanwhile(operation: ops.Operation, watcher: object = None) -> object:
        one.session.perform = plain  # type: ignore[method-assign]
        one.session.expire()
        two.hold()
        two.copier.put(HERE, {("g", T0): committed(5)})
        two.copier.round()
        with pytest.raises(ops.SessionExpired):
            plain(ops.Sync("/"))
        one.session.resume()
        return plain(operation)

    one.copier.settle(HERE)
    one.copier.put(HERE, {("g", T0): committed(2)})
    one.session.perform = meanwhile  # type: ignore[method-assign, assignment]
    with pytest.raises(ops.SessionExpired):
        one.copier.round()
    assert stored(world) == {T0: 5}


def test_long_waits_are_told_once(world: FakeZooKeeper) -> None:
    """After ten seconds an event names the partitions and who holds them: their groups are answered 14."""
    one, two = Desk(world, 1), Desk(world, 2)
    one.hold()
    two.copier.take(HERE, 1)
    for _ in range(4):
        two.copier.round()
        two.clock.advance(TELL_AFTER_S / 2)
    (event,) = [entry.event for entry in two.journal.since()]
    assert (event.name, event.partitions, event.reason) == ("coordinator_waits", (HERE,), "broker 1")  # type: ignore[attr-defined]


def running(world: FakeZooKeeper, session: FakeSession, journal: Journal) -> tuple[Copier, Heard]:
    heard = Heard()
    copier = Copier(lambda: session, 1, lambda function, *values: function(*values), interval_s=3600, journal=journal)
    copier.start(heard)
    copier.take(HERE, 1)
    until(lambda: heard.takes, "the claim is taken")
    copier.put(HERE, {("g", T0): committed(1)})
    until(lambda: stored(world) == {T0: 1}, "the first copy is written at once")
    return copier, heard


def test_a_clean_stop_copies_what_is_left(world: FakeZooKeeper) -> None:
    """However long the interval, close writes everything, and then ends the claims."""
    session, journal = world.session(), Journal()
    copier, _ = running(world, session, journal)
    copier.put(HERE, {("g", T0): committed(2), ("g", T1): committed(3)})
    copier.close(60.0)
    assert (stored(world), session.is_closed) == ({T0: 2, T1: 3}, True)
    assert [entry.event.name for entry in journal.since()] == []


def test_a_stop_without_zookeeper_has_an_end(world: FakeZooKeeper) -> None:
    """Close gives up at its deadline and says how many offsets are not copied."""
    session, journal = world.session(), Journal()
    copier, _ = running(world, session, journal)
    session.suspend()
    copier.put(HERE, {("g", T0): committed(2), ("g", T1): committed(3)})
    done = threading.Thread(target=copier.close, args=(0.3,))
    done.start()
    done.join(60.0)
    assert not done.is_alive()
    (event,) = [e.event for e in journal.since() if e.event.name == "offsets_not_copied"]
    assert event.n_offsets == 2  # type: ignore[attr-defined]


def test_the_thread_goes_on_after_an_outage(world: FakeZooKeeper) -> None:
    """ZooKeeper away for a while: everything is copied when it is back, by itself."""
    session, journal = world.session(), Journal()
    copier, heard = running(world, session, journal)
    copier._interval_s = 0.0
    session.suspend()
    copier._copy_at = 0.0
    copier.put(HERE, {("g", T0): committed(2)})
    until(lambda: "copying_delayed" in [e.event.name for e in journal.since()], "it was tried")
    session.resume()
    until(lambda: stored(world) == {T0: 2}, "it was copied")
    assert heard.losses == []
    copier.close(60.0)


def test_an_idle_copier_notices_that_its_session_is_over(world: FakeZooKeeper) -> None:
    """Without anything to copy, too: its claims are gone, and whoever wants them must hear of it (§3.2)."""
    session = world.session()
    copier, heard = running(world, session, Journal())
    session.suspend()
    session.expire()
    session.resume()
    until(lambda: heard.losses, "the loss is told")
    assert heard.losses == [frozenset({HERE})]
    copier.close(60.0)
