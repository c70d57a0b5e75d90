"""The in-sync set in ZooKeeper: written over what was seen, or not at all (§1.3, §4.4 of the sheet)."""

from __future__ import annotations

import json

from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.modern import paths
from zk_registry.modern.in_sync import NOTICE, Refusal, notify, write_in_sync_sets
from zk_registry.modern.texts import PartitionState, parse_state
from zk_registry.operations import Children, Create, Get, Set

KEY = ("t", 0)
STATE = PartitionState(1, 4, (1, 2, 3), controller_epoch=2)
SMALLER = PartitionState(1, 4, (1, 2), controller_epoch=2)


def stored() -> FakeSession:
    session = FakeZooKeeper().session()
    session.perform(Create(paths.state(*KEY), STATE.encode(), make_parents=True))
    return session


def test_a_set_is_written_over_what_was_seen() -> None:
    """The new set is stored with the epochs of the decision, and the node's new version is told."""
    session = stored()
    assert write_in_sync_sets(session, {KEY: (SMALLER, 0)}) == {KEY: 1}
    assert parse_state(session.perform(Get(paths.state(*KEY))).value) == SMALLER


def test_a_decision_in_between_is_not_undone() -> None:
    """Who finds that another has written does not try again with the newer version (§1.3)."""
    session = stored()
    decided = PartitionState(2, 5, (2, 3), controller_epoch=3)
    session.perform(Set(paths.state(*KEY), decided.encode()))
    assert write_in_sync_sets(session, {KEY: (SMALLER, 0)}) == {KEY: Refusal.DECIDED}
    assert parse_state(session.perform(Get(paths.state(*KEY))).value) == decided


def test_a_lost_answer_is_looked_up() -> None:
    """What is stored already, because only the answer was lost, counts as written."""
    session = stored()
    session.perform(Set(paths.state(*KEY), SMALLER.encode()))
    assert write_in_sync_sets(session, {KEY: (SMALLER, 0)}) == {KEY: 1}


def test_a_deleted_partition_is_decided() -> None:
    """A node that is gone is a decision, too."""
    session = FakeZooKeeper().session()
    assert write_in_sync_sets(session, {KEY: (SMALLER, 0)}) == {KEY: Refusal.DECIDED}


def test_a_lost_connection_leaves_it_open() -> None:
    """Without an answer nobody knows whether it is stored: the larger set counts on, and it is written again."""
    world = FakeZooKeeper(lost_reply_rate=1.0)
    assert write_in_sync_sets(world.session(), {KEY: (SMALLER, 0)}) == {KEY: Refusal.UNKNOWN}


def test_the_controller_is_told_in_a_node_of_its_own() -> None:
    """The notice has the layout real controllers read (§1.2)."""
    session = FakeZooKeeper().session()
    session.perform(Create("/isr_change_notification", None))
    notify(session, [("t", 0), ("u", 3)])
    (name,) = session.perform(Children("/isr_change_notification"))
    assert name == "isr_change_0000000000" and NOTICE.endswith("isr_change_")
    assert json.loads(session.perform(Get(f"/isr_change_notification/{name}")).value) == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0}, {"topic": "u", "partition": 3}],
    }
