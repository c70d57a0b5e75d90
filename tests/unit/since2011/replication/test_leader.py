"""What a leader decides: watermark, in-sync set, acknowledgements (KIP-101 and what came after)."""

from __future__ import annotations

from since2011.replication.leader import Leader, ProposeIsr, Raised, SyncRules
from since2011.replication.partition_state import PartitionState


def leading(isr: tuple[int, ...] = (0, 1, 2), *, min_insync: int = 2, log_end: int = 0) -> Leader:
    state = PartitionState(0, 5, isr, (0, 1, 2), version=7)
    return Leader(0, state, log_end, 0, SyncRules(lag_s=10, grace_s=0.5, min_insync=min_insync), now=0.0)


def test_the_watermark_waits_for_every_replica_in_sync() -> None:
    """What is acknowledged with acks=all is held by the whole in-sync set (§3.3's future work)."""
    leader = leading()
    leader.appended(3, 1.0)
    assert leader.fetched(1, 3, 0, 1.1) == []
    assert leader.fetched(2, 2, 0, 1.2) == [Raised(2)]
    assert leader.fetched(2, 3, 0, 1.3) == [Raised(3)]
    assert leader.is_replicated(3) and not leader.is_replicated(4)


def test_a_leaving_replica_counts_until_its_leaving_is_stored() -> None:
    """A replica about to leave may still be elected, so it is waited for until ZooKeeper has stored the smaller set."""
    leader = leading()
    leader.appended(3, 1.0)
    leader.fetched(1, 3, 0, 1.0)
    leader.disconnected(2, 1.0)
    assert leader.tick(1.2) == []
    (proposal,) = leader.tick(1.6)
    assert proposal == ProposeIsr((0, 1), 7, "replicas [2] have fallen behind or gone")
    assert leader.high_watermark == 0
    assert leader.isr_written(8, 1.7) == [Raised(3)]
    assert leader.state.isr == (0, 1) and leader.state.version == 8


def test_a_dead_follower_of_an_idle_partition_is_found() -> None:
    """A follower whose connection closed leaves the in-sync set though it has everything (goals: within a second)."""
    leader = leading()
    leader.fetched(1, 0, 0, 1.0)
    leader.fetched(2, 0, 0, 1.0)
    assert leader.tick(100.0) == []
    leader.disconnected(2, 100.0)
    assert leader.tick(100.6) == [ProposeIsr((0, 1), 7, "replicas [2] have fallen behind or gone")]


def test_a_follower_that_comes_back_in_time_stays() -> None:
    """A connection that is made again within the time of grace costs nothing."""
    leader = leading()
    leader.disconnected(2, 1.0)
    leader.fetched(2, 0, 0, 1.3)
    assert leader.tick(2.0) == []


def test_who_joins_has_reached_the_leaders_epoch() -> None:
    """A follower joins only when it has everything the leader had when its epoch began (KAFKA-7128)."""
    leader = leading((0, 1), log_end=10)
    assert leader.fetched(2, 9, 0, 1.0) == []
    assert leader.fetched(2, 10, 0, 1.1) == [ProposeIsr((0, 1, 2), 7, "replica 2 has caught up")]


def test_a_dead_broker_does_not_join() -> None:
    """A fetch of a broker that has left ZooKeeper does not bring it into the in-sync set (KAFKA-14140)."""
    assert leading((0, 1)).fetched(2, 0, 0, 1.0, broker_is_live=False) == []


def test_below_the_minimum_nothing_is_committed() -> None:
    """With fewer in sync than min.insync.replicas the watermark stands still (KAFKA-15583) and acks=all is refused."""
    leader = leading((0,), min_insync=2)
    assert leader.appended(3, 1.0) == []
    assert not leader.has_enough_replicas


def test_a_refused_proposal_waits_for_the_controller() -> None:
    """A leader whose write of the in-sync set was refused does not write over the newer decision (KAFKA-2729)."""
    leader = leading()
    leader.disconnected(2, 1.0)
    assert leader.tick(2.0)
    leader.isr_refused()
    assert leader.tick(3.0) == []
    leader.decided(leader.state._replace(isr=(0, 1), version=9), 3.5)
    assert leader.pending is None and leader.state.isr == (0, 1)


def test_an_older_decision_is_ignored() -> None:
    """LeaderAndIsr with an older version of the node changes nothing (KAFKA-12686)."""
    leader = leading()
    leader.decided(leader.state._replace(isr=(0,), version=6), 1.0)
    assert leader.state.isr == (0, 1, 2)
