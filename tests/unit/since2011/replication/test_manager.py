"""What a controller decides, at the broker it tells: fencing, leading, following, acknowledging (issue 26.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kafka2011.errors import RequestTimedOut
from since2011.replication.leadership import Leaderships
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from tests.unit.since2011.replication.bench import BROKER_EPOCH, ME, OTHER, THIRD, Replicas

STALE, NONE = ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.NONE


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path / "logs")
    yield replicas
    replicas.close()


def refused(waiting: Deferred[None] | None) -> ErrorCode:
    """Why it failed."""
    assert waiting is not None
    found: list[ErrorCode] = []
    waiting.addErrback(lambda failure: found.append(failure.value.error))
    return found[0]


# -- fencing ----------------------------------------------------------------------------------------------------------


def test_an_older_controller_is_refused_as_a_whole(here: Replicas) -> None:
    """A deposed controller decides nothing any more (§2.9 of the sheet; issue 26, must show 6)."""
    assert here.decide(ME, 3, controller_epoch=5) == (NONE, NONE)
    assert here.decide(OTHER, 4, controller_epoch=4) == (STALE, STALE)
    assert here.stop(4, controller_epoch=4) == (STALE, STALE)
    assert here.led.leader_epoch == 3


def test_a_request_for_an_earlier_life_is_refused(here: Replicas) -> None:
    """What was sent to this broker before it registered anew is not obeyed (KIP-380)."""
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert here.decide(ME, 3, broker_epoch=BROKER_EPOCH - 1) == (stale, stale)
    assert here.decide(ME, 3, broker_epoch=-1) == (NONE, NONE)


def test_an_equal_or_older_leader_epoch_changes_nothing(here: Replicas) -> None:
    """Controllers repeat themselves: the same epoch again is refused, and nothing is begun anew (KAFKA-2721)."""
    here.decide(ME, 3)
    led = here.led
    assert here.decide(ME, 3) == (NONE, STALE)
    assert here.decide(OTHER, 2) == (NONE, STALE)
    assert here.led is led


def test_who_is_no_replica_is_not_told_to_be(here: Replicas) -> None:
    """A partition of which this broker holds no replica is unknown to it."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert here.decide(OTHER, 1, isr=(OTHER,), replicas=(OTHER, THIRD)) == (NONE, error)


def test_a_stop_that_was_overtaken_deletes_nothing(here: Replicas) -> None:
    """A StopReplica of an older epoch must not delete a replica that has come back since (KIP-570)."""
    here.decide(ME, 3)
    here.append(b"kept", everywhere=False)
    assert here.stop(2, delete=True) == (NONE, ErrorCode.FENCED_LEADER_EPOCH)
    assert here.log.log_end_offset == 1
    assert here.stop(3) == (NONE, NONE)
    with pytest.raises(Refused):
        here.manager.find("t", 0)
    assert here.log.log_end_offset == 1


def test_a_dead_leader_is_not_followed_and_the_same_epoch_counts_later(here: Replicas) -> None:
    """Of a decision whose leader is not alive nothing is taken over (KAFKA-1647)."""
    assert here.decide(OTHER, 4, live=()) == (NONE, NONE)
    assert here.manager.replicas == {}
    assert here.decide(OTHER, 4) == (NONE, NONE)
    assert here.manager.replicas["t", 0].state.leader_epoch == 4


# -- acknowledging ----------------------------------------------------------------------------------------------------


def test_acks_all_waits_for_every_replica_in_sync(here: Replicas) -> None:
    """A produce with acks=all is answered when the whole in-sync set has it, and readers see it then (KIP-101)."""
    here.decide(ME, 0)
    waiting = here.append(b"v")
    assert waiting is not None
    here.leading.fetched(here.led, OTHER, 1, 0)
    assert not waiting.called and here.log.high_watermark == 0
    here.leading.fetched(here.led, THIRD, 1, 0)
    assert waiting.called and here.log.high_watermark == 1


def test_acks_one_waits_for_nobody(here: Replicas) -> None:
    """acks=1 is answered after the append; readers see it when the others have it."""
    here.decide(ME, 0)
    assert here.append(b"v", everywhere=False) is None
    assert (here.log.log_end_offset, here.log.high_watermark) == (1, 0)


def test_a_partition_with_one_replica_knows_nothing_of_replication(here: Replicas) -> None:
    """With one replica an append is committed at once, whatever acks says."""
    here.decide(ME, 0, isr=(ME,), replicas=(ME,))
    assert here.led.leader is None
    assert here.append(b"v") is None
    assert here.log.high_watermark == 1


def test_too_few_in_sync_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """acks=all below min.insync.replicas is NOT_ENOUGH_REPLICAS; nothing is kept, and acks=1 is taken (issue 26.2)."""
    here = Replicas(tmp_path / "logs", min_insync=2)
    here.decide(ME, 0, isr=(ME,))
    with pytest.raises(Refused) as found:
        here.append(b"v")
    assert found.value.error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert here.logs.get("t", 0) is None
    assert here.append(b"v", everywhere=False) is None
    here.close()


def test_a_produce_that_is_not_replicated_in_time_stays_and_says_so(here: Replicas) -> None:
    """After the request's own time acks=all is REQUEST_TIMED_OUT; what was appended stays."""
    here.decide(ME, 0)
    waiting = here.append(b"v", timeout_s=3.0)
    assert waiting is not None
    failed: list[type] = []
    waiting.addErrback(lambda failure: failed.append(failure.type))
    here.reactor.advance(3.1)
    assert failed == [RequestTimedOut]
    assert here.log.log_end_offset == 1


def test_a_deposed_leader_fails_whoever_waits(here: Replicas) -> None:
    """Whoever waits for replicas is told NOT_LEADER_OR_FOLLOWER when another is elected; the log is not cut by that."""
    here.decide(ME, 0)
    waiting = here.append(b"v")
    here.decide(OTHER, 1)
    assert refused(waiting) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_whoever_waits_goes_on_when_the_same_leader_is_elected_anew(here: Replicas) -> None:
    """A new epoch of the same leader, as when a follower dies, fails nobody."""
    here.decide(ME, 0)
    waiting = here.append(b"v")
    assert waiting is not None
    here.decide(ME, 1, isr=(ME, OTHER))
    assert not waiting.called
    here.leading.fetched(here.led, OTHER, 1, 0)
    assert waiting.called and here.log.high_watermark == 1


def test_without_the_lease_only_acks_all_is_taken(here: Replicas) -> None:
    """A leader that ZooKeeper does not answer acknowledges nothing another leader could not have (design D22)."""
    here.decide(ME, 0)
    here.has_lease = False
    with pytest.raises(Refused) as found:
        here.append(b"v", everywhere=False)
    assert found.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert here.append(b"v") is not None
    assert not here.leading.may_answer(here.led)


# -- leading after somebody else --------------------------------------------------------------------------------------


def test_an_epoch_is_noted_before_anything_is_written_in_it(here: Replicas) -> None:
    """A leader that never writes is still known to have led from here on (KAFKA-7415)."""
    here.decide(ME, 0)
    here.append(b"a", everywhere=False)
    here.decide(OTHER, 1)
    here.decide(ME, 2)
    assert [(entry.epoch, entry.start_offset) for entry in here.log.epochs.entries] == [(0, 0), (2, 1)]


def test_no_watermark_goes_back_after_an_election(here: Replicas) -> None:
    """A new leader tells no reader its watermark before everything it began with is committed (goals)."""
    here.decide(ME, 0)
    here.append(b"a", b"b", everywhere=False)
    here.decide(OTHER, 1)
    here.decide(ME, 2, isr=(ME, OTHER))
    led = here.led
    assert not led.is_settled
    settling = here.leading.settled(led)
    assert settling is not None and not settling.called
    here.leading.fetched(led, OTHER, 2, 0)
    assert led.is_settled and settling.called and here.log.high_watermark == 2


def test_a_replica_that_is_not_known_is_refused(here: Replicas) -> None:
    """Who fetches as a follower without being one is told so, and counts for nothing (KAFKA-14078)."""
    here.decide(ME, 0)
    with pytest.raises(Refused) as known:
        here.led.check_replica(7, 0)
    with pytest.raises(Refused) as unsaid:
        here.led.check_replica(7, -1)
    assert known.value.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert unsaid.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_beyond_the_end_counts_for_nothing(here: Replicas) -> None:
    """What a follower asks for beyond the end of the log raises no watermark (issue 26, must show 6)."""
    here.decide(ME, 0)
    here.append(b"a", everywhere=False)
    here.leading.fetched(here.led, OTHER, 99, 0)
    here.leading.fetched(here.led, THIRD, 99, 0)
    assert here.log.high_watermark == 0


# -- who listens ------------------------------------------------------------------------------------------------------


class Heard:
    """A coordinator that only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def elected(self, index: int, epoch: int) -> None:
        self.told.append(("elected", index, epoch))

    def resigned(self, index: int) -> None:
        self.told.append(("resigned", index, -1))


def test_a_coordinator_follows_the_leadership_of_its_partitions(here: Replicas) -> None:
    """Coordinators are elected and resign with the leader of their partition, also those who come late (issue 26.4)."""
    early, late = Heard(), Heard()
    here.manager.leaderships.watch("t", early)
    here.decide(ME, 0)
    here.manager.leaderships.watch("t", late)
    here.decide(ME, 1)
    here.decide(OTHER, 2)
    assert early.told == [("elected", 0, 0), ("elected", 0, 1), ("resigned", 0, -1)]
    assert late.told == early.told


def test_a_controller_ends_what_was_led_by_the_metadata() -> None:
    """The first controller seen is whose word counts: everything led before is resigned."""
    heard, leaderships = Heard(), Leaderships()
    leaderships.watch("t", heard)
    leaderships.now("t", {0: 0, 1: 0})
    leaderships.now("t", {1: 3})
    leaderships.none()
    assert heard.told == [
        ("elected", 0, 0), ("elected", 1, 0), ("resigned", 0, -1), ("elected", 1, 3), ("resigned", 1, -1)
    ]  # fmt: skip
