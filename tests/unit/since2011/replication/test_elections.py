"""Who leads next, in the order and from the sets a real controller uses."""

from __future__ import annotations

from since2011.controller import elections
from since2011.controller.elections import Elected


def test_the_first_live_replica_in_sync_leads() -> None:
    """Candidates are tried in the order of assignment, not of the in-sync set."""
    assert elections.offline((3, 1, 2), (2, 1), {1, 2}) == Elected(1, (2, 1))


def test_nobody_outside_the_in_sync_set_leads() -> None:
    """Without unclean election a partition waits for a replica that was in sync."""
    assert elections.offline((3, 1, 2), (3,), {1, 2}) is None
    assert elections.offline((3, 1, 2), (3,), {1, 2}, unclean=True) == Elected(1, (1,), unclean=True)


def test_the_preferred_leader_is_the_first_of_the_assignment() -> None:
    """A preferred election moves leadership to the head of the assignment, or nowhere."""
    assert elections.preferred((3, 1), (1, 3), {1, 3}) == Elected(3, (1, 3))
    assert elections.preferred((3, 1), (1,), {1, 3}) is None


def test_a_stopping_broker_hands_over() -> None:
    """In a controlled shutdown the brokers that stop leave the in-sync set, and one that stays leads."""
    assert elections.controlled_shutdown((3, 1, 2), (1, 2, 3), {1, 2}, {3}) == Elected(1, (1, 2))
    assert elections.controlled_shutdown((3,), (3,), set(), {3}) is None


def test_a_reassigned_partition_is_led_by_a_new_replica() -> None:
    """The leader after a reassignment is the first of the target that is alive and in sync."""
    assert elections.reassigned((4, 1), (1, 2), {1, 2, 4}) == Elected(1, (1, 2))


def test_a_new_partition_begins_with_who_is_alive() -> None:
    """The in-sync set of a new partition holds its live replicas; without one it has no leader yet."""
    assert elections.created((1, 2, 3), {2, 3}) == Elected(2, (2, 3))
    assert elections.created((1,), set()) is None


def test_the_last_in_sync_replica_is_remembered() -> None:
    """An offline partition remembers who may lead it: the last member never leaves the in-sync set."""
    assert elections.without((1, 2), 1, 1) == (-1, (2,))
    assert elections.without((1,), 1, 1) == (-1, (1,))
