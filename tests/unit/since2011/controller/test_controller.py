"""The controller's decisions over a ZooKeeper in memory: what is written, and who is told what, in which order."""

from __future__ import annotations

import pytest

from since2011.controller import leadership, office, reassignment
from since2011.controller.steps import Deposed
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.unit.since2011.controller.cluster import Cluster, key
from zk_registry.modern import paths, texts
from zk_registry.modern.registry import ModernRegistry
from zk_registry.modern.texts import Assignment, PartitionState
from zk_registry.operations import Get, Set

LEAD, TELL, STOP = ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA


def test_the_office_is_won_once() -> None:
    """Issue 26 point 1: /controller and /controller_epoch change in one transaction, and only one broker wins."""
    cluster = Cluster(1, 2)
    assert texts.parse_controller(cluster.admin.perform(Get(paths.CONTROLLER)).value) == 1
    node = cluster.admin.perform(Get(paths.CONTROLLER_EPOCH))
    assert (node.value, node.version) == (b"1", 1)
    other = cluster.run(office.run_for_office(2, cluster.sessions[2].session_id, 0, cluster.rules))
    assert other is None


def test_everybody_learns_who_lives_before_anything_else() -> None:
    """A controller begins with UpdateMetadata: nobody can follow a leader whose address is unknown (KAFKA-4443)."""
    cluster = Cluster(1, 2)
    assert cluster.order(1)[0] is TELL and cluster.order(2)[0] is TELL
    assert [broker.id for broker in cluster.sent[0].body.brokers] == [1, 2]


def test_a_new_topic_is_led_by_its_first_living_replica() -> None:
    """A partition begins with its living replicas in sync; leader and followers are told, then everybody."""
    cluster = Cluster(1, 2, 3)
    cluster.kill(3)
    cluster.settle()
    cluster.sent.clear()
    cluster.create("t", (3, 2), (1, 3))
    assert cluster.state("t", 0) == PartitionState(2, 0, (2,), 1)
    assert cluster.state("t", 1) == PartitionState(1, 0, (1,), 1)
    assert cluster.order(2) == [LEAD, TELL] and cluster.order(1) == [LEAD, TELL]
    (row,) = cluster.told(LEAD, 2)
    assert (row.leader, row.replicas, row.is_new, row.partition_epoch) == (2, [3, 2], True, 0)
    assert [row.offline for row in cluster.told(TELL, 1)] == [[3], [3]]


def test_a_topic_without_a_living_replica_waits() -> None:
    """No state is written until a replica's broker comes; then it leads."""
    cluster = Cluster(1)
    cluster.create("t", (2,))
    assert not cluster.is_there(paths.state("t", 0))
    cluster.start(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(2, 0, (2,), 1)


def test_a_dead_leader_is_followed_by_one_in_sync() -> None:
    """Issue 26 point 3, offline election: another of the in-sync set leads, in the next epoch, without the dead one."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 1, 3))
    cluster.in_sync("t", (2, 3))
    cluster.sent.clear()
    cluster.kill(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(3, 1, (3,), 1)
    assert [row.leader for row in cluster.told(LEAD, 1)] == [3]
    assert cluster.told(LEAD, 2) == []


def test_the_in_sync_set_remembers_who_may_lead() -> None:
    """Where nobody in sync lives nobody leads; whoever comes back from outside the set does not either."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    cluster.in_sync("t", (2,))
    cluster.kill(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(-1, 1, (2,), 1)
    cluster.kill(3)
    cluster.settle()
    cluster.start(3)
    cluster.settle()
    assert cluster.state("t").leader == -1
    cluster.start(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(2, 2, (2,), 1)


def test_unclean_election_is_a_setting() -> None:
    """``unclean.leader.election.enable``: a replica that is behind leads, alone in sync, as soon as it may."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    cluster.in_sync("t", (2,))
    cluster.kill(2)
    cluster.settle()
    cluster.rules.unclean_topics = ("t",)
    cluster.run(office.settings_changed(cluster.context))
    assert cluster.state("t") == PartitionState(3, 2, (3,), 1)


def test_a_dead_follower_leaves_the_in_sync_set() -> None:
    """The controller takes a dead follower out, so that acks=all does not wait for its lag to be noticed."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3, 1))
    cluster.kill(3)
    cluster.settle()
    assert cluster.state("t") == PartitionState(2, 1, (2, 1), 1)


def test_a_broker_that_was_away_and_is_back_loses_what_it_led() -> None:
    """Same id, another registration: first dead, then new, even if both happened between two looks."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    cluster.kill(2)
    cluster.start(2)
    cluster.sent.clear()
    cluster.settle()
    assert cluster.state("t") == PartitionState(3, 1, (3,), 1)
    assert cluster.order(2)[:2] == [TELL, TELL]
    assert [(row.leader, row.isr) for row in cluster.told(LEAD, 2)] == [(3, [3])]


def test_a_write_of_a_leader_in_between_is_not_lost() -> None:
    """A state that a leader has changed since it was read is read again and decided anew, not written over."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3, 1))
    path = paths.state("t", 0)
    node = cluster.admin.perform(Get(path))
    cluster.admin.perform(Set(path, PartitionState(2, 0, (2, 1), 1).encode(), node.version))
    verdicts = cluster.run(leadership.elect(cluster.context, [key("t")], unclean=False))
    assert verdicts == {key("t"): ErrorCode.ELECTION_NOT_NEEDED}
    cluster.kill(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(1, 1, (1,), 1)


def test_a_deposed_controller_writes_nothing() -> None:
    """Issue 26 points 1 and 6: every write checks the controller's epoch; one that is over ends in ``Deposed``."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    node = cluster.admin.perform(Get(paths.CONTROLLER_EPOCH))
    cluster.admin.perform(Set(paths.CONTROLLER_EPOCH, b"2", node.version))
    cluster.kill(2)
    with pytest.raises(Deposed):
        cluster.settle()
    assert cluster.state("t") == PartitionState(2, 0, (2, 3), 1)


def test_the_next_controller_finds_everything_in_the_nodes() -> None:
    """A controller that takes over tells every replica what is stored, and elects where the old one led."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (1, 2, 3), (2, 3, 1))
    cluster.kill(1)
    cluster.noted.clear()
    cluster.world.deliver()
    cluster.sent.clear()
    cluster.elect(2)
    assert cluster.state("t", 0) == PartitionState(2, 1, (2, 3), 2)
    assert cluster.state("t", 1) == PartitionState(2, 1, (2, 3), 2)
    assert cluster.order(3)[0] is TELL
    assert {message.body.controller_epoch for message in cluster.sent} == {2}


def test_what_a_crashed_controller_left_half_made_is_finished() -> None:
    """A partition's parent without a state, or a state without a word to anybody: both end as a topic that is led."""
    cluster = Cluster(1, 2)
    ModernRegistry(cluster.admin).create_topic("t", Assignment({0: (1,), 1: (2,)}), {})
    for path in (paths.partitions("t"), paths.partition("t", 0), paths.partition("t", 1)):
        cluster.put_quietly(path)
    cluster.put_quietly(paths.state("t", 1), PartitionState(2, 4, (2,), 0).encode())
    cluster.settle()
    assert cluster.state("t", 0) == PartitionState(1, 0, (1,), 1)
    assert cluster.state("t", 1) == PartitionState(2, 4, (2,), 0)
    assert [row.leader_epoch for row in cluster.told(LEAD, 2)] == [4]


def test_a_topic_that_grows_gets_only_what_is_new() -> None:
    """Growth: new partitions are made; the old ones are left alone."""
    cluster = Cluster(1, 2)
    cluster.create("t", (1, 2))
    cluster.sent.clear()
    ModernRegistry(cluster.admin).add_partitions(
        "t", lambda before: Assignment({**before.partitions, 1: (2, 1)}, before.topic_id)
    )
    cluster.settle()
    assert cluster.state("t", 1) == PartitionState(2, 0, (2, 1), 1)
    assert [row.index for row in cluster.told(LEAD, 1)] == [1]


def test_a_deleted_topic_goes_when_the_last_replica_has_said_so() -> None:
    """Deletion: everybody forgets it, its replicas delete themselves, then the nodes go."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (1, 2), (2, 1))
    cluster.sent.clear()
    cluster.put(paths.deletion("t"))
    assert {row.leader for row in cluster.told(TELL, 3)} == {-2}
    assert [(row.leader_epoch, row.delete) for row in cluster.told(STOP, 1)] == [(-2, True)] * 2
    cluster.answer_all(2)
    assert cluster.is_there(paths.topic("t"))
    cluster.kill(2)
    cluster.settle()
    cluster.start(2)
    cluster.settle()
    cluster.answer_all()
    cluster.settle()
    assert not cluster.is_there(paths.topic("t"))
    assert not cluster.is_there(paths.config("topics/t"))
    assert not cluster.is_there(paths.deletion("t"))
    assert cluster.context.topics == {}


def test_the_next_controller_goes_on_deleting() -> None:
    """A topic below /admin/delete_topics is deleted by whoever is in office, from the beginning."""
    cluster = Cluster(1, 2)
    cluster.create("t", (1, 2))
    cluster.put(paths.deletion("t"))
    cluster.sent.clear()
    cluster.kill(1)
    cluster.elect(2)
    cluster.answer_all()
    assert cluster.is_there(paths.topic("t"))
    cluster.start(1)
    cluster.settle()
    cluster.answer_all()
    assert not cluster.is_there(paths.topic("t"))


def test_deletion_can_be_off() -> None:
    """``delete.topic.enable=false``: the request goes, the topic stays; so does a request about no topic."""
    cluster = Cluster(1)
    cluster.create("t", (1,))
    cluster.rules.deletes = False
    cluster.put(paths.deletion("t"))
    assert cluster.is_there(paths.topic("t")) and not cluster.is_there(paths.deletion("t"))
    cluster.rules.deletes = True
    cluster.put(paths.deletion("nothing"))
    assert not cluster.is_there(paths.deletion("nothing"))


def test_a_controlled_shutdown_hands_over() -> None:
    """ControlledShutdown: others lead before the broker goes; it leaves in-sync sets; what cannot move is told."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3), (3, 2), (2,))
    cluster.create("u", (2, 3))
    cluster.in_sync("u", (2,))
    cluster.sent.clear()
    epoch = cluster.context.brokers[2].epoch
    verdict = cluster.run(leadership.shut_down(cluster.context, 2, epoch))
    assert verdict == (ErrorCode.NONE, [key("u")])
    assert cluster.state("t", 0) == PartitionState(3, 1, (3,), 1)
    assert cluster.state("t", 1) == PartitionState(3, 1, (3,), 1)
    assert cluster.state("t", 2) == PartitionState(2, 0, (2,), 1)
    assert cluster.order(2) == [LEAD, TELL, STOP]
    assert cluster.run(leadership.shut_down(cluster.context, 2, epoch - 1))[0] is ErrorCode.STALE_BROKER_EPOCH
    assert cluster.run(leadership.shut_down(cluster.context, 9, 1))[0] is ErrorCode.BROKER_NOT_AVAILABLE


def test_the_preferred_leader_gets_its_partition_back() -> None:
    """Preferred election by request, by node and by balance; each verdict as a real controller gives it."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3), (3, 2))
    cluster.kill(2)
    cluster.settle()
    cluster.start(2)
    cluster.settle()
    asked = [key("t", 0), key("t", 1), key("t", 7)]
    verdicts = cluster.run(leadership.elect(cluster.context, asked, unclean=False))
    assert list(verdicts.values()) == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    cluster.in_sync("t", (3, 2))
    cluster.run(leadership.balance(cluster.context, 10))
    assert cluster.state("t") == PartitionState(2, 2, (3, 2), 1)
    cluster.kill(2)
    cluster.settle()
    cluster.start(2)
    cluster.settle()
    cluster.in_sync("t", (3, 2))
    cluster.put(paths.PREFERRED_ELECTION, texts.encode_partitions([("t", 0)]))
    assert cluster.state("t").leader == 2
    assert not cluster.is_there(paths.PREFERRED_ELECTION)


def test_an_unclean_election_on_request() -> None:
    """ElectLeaders, unclean: only where nobody leads, and only if somebody lives."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    elect = leadership.elect(cluster.context, [key("t")], unclean=True)
    assert cluster.run(elect) == {key("t"): ErrorCode.ELECTION_NOT_NEEDED}
    cluster.in_sync("t", (2,))
    cluster.kill(2)
    cluster.kill(3)
    cluster.settle()
    elect = leadership.elect(cluster.context, [key("t")], unclean=True)
    assert cluster.run(elect) == {key("t"): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    cluster.start(3)
    cluster.settle()
    elect = leadership.elect(cluster.context, [key("t")], unclean=True)
    assert cluster.run(elect) == {key("t"): ErrorCode.NONE}
    assert cluster.state("t") == PartitionState(3, 2, (3,), 1)


def test_replicas_move_in_steps() -> None:
    """Reassignment [2,3] -> [3,1]: 1 copies; when it is in sync 3 leads, 2 leaves and deletes what it has."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    cluster.sent.clear()
    verdicts = cluster.run(reassignment.reassign(cluster.context, {key("t"): (3, 1), key("x"): (1,)}))
    assert verdicts == {key("t"): ErrorCode.NONE, key("x"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert cluster.assignment("t") == Assignment({0: (3, 1, 2)}, None, {0: (1,)}, {0: (2,)})
    assert cluster.state("t") == PartitionState(2, 1, (2, 3), 1)
    assert [(row.is_new, row.adding, row.removing) for row in cluster.told(LEAD, 1)] == [(True, [1], [2])]
    assert [row.is_new for row in cluster.told(LEAD, 3)] == [False]
    cluster.sent.clear()
    cluster.in_sync("t", (2, 3, 1))
    assert cluster.state("t") == PartitionState(3, 2, (3, 1), 1)
    assert cluster.assignment("t") == Assignment({0: (3, 1)})
    assert cluster.told(LEAD, 2) == []
    assert [(row.leader_epoch, row.delete) for row in cluster.told(STOP, 2)] == [(2, True)]


def test_a_move_survives_the_controller() -> None:
    """The next controller finds a move in the topic's node and ends it, also one whose copying was done meanwhile."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2,))
    cluster.run(reassignment.reassign(cluster.context, {key("t"): (3,)}))
    cluster.kill(1)
    cluster.world.deliver()
    cluster.noted.clear()
    node = cluster.admin.perform(Get(paths.state("t", 0)))
    cluster.admin.perform(Set(paths.state("t", 0), PartitionState(2, 1, (2, 3), 1).encode(), node.version))
    cluster.elect(2)
    assert cluster.assignment("t") == Assignment({0: (3,)})
    assert cluster.state("t") == PartitionState(3, 2, (3,), 2)


def test_a_move_can_be_cancelled() -> None:
    """Null replicas: what was being added goes again, and the old replicas stay."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2,))
    cluster.run(reassignment.reassign(cluster.context, {key("t"): (3,)}))
    cluster.sent.clear()
    assert cluster.run(reassignment.reassign(cluster.context, {key("t"): None})) == {key("t"): ErrorCode.NONE}
    assert cluster.assignment("t") == Assignment({0: (2,)})
    assert [row.delete for row in cluster.told(STOP, 3)] == [True]
    again = cluster.run(reassignment.reassign(cluster.context, {key("t"): None}))
    assert again == {key("t"): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}


def test_another_move_overtakes_the_first() -> None:
    """A new target while replicas are copied: those that are not wanted any more go at once."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2,))
    cluster.run(reassignment.reassign(cluster.context, {key("t"): (3,)}))
    cluster.sent.clear()
    cluster.run(reassignment.reassign(cluster.context, {key("t"): (1,)}))
    assert cluster.assignment("t") == Assignment({0: (1, 2)}, None, {0: (1,)}, {0: (2,)})
    assert [row.delete for row in cluster.told(STOP, 3)] == [True]


def test_moves_asked_for_by_a_node() -> None:
    """/admin/reassign_partitions of old tools: it goes when the moves are done, and at once if it cannot be read."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2,))
    cluster.put(paths.REASSIGNMENT, texts.encode_reassignment({("t", 0): (3,), ("x", 0): (1,)}))
    assert cluster.is_there(paths.REASSIGNMENT)
    cluster.in_sync("t", (2, 3))
    assert not cluster.is_there(paths.REASSIGNMENT)
    assert cluster.assignment("t") == Assignment({0: (3,)})
    cluster.put(paths.REASSIGNMENT, b"garbage")
    assert not cluster.is_there(paths.REASSIGNMENT)


@pytest.mark.parametrize("target", [(), (3, 3), (9,)])
def test_a_move_to_nowhere_is_refused(target: tuple[int, ...]) -> None:
    """No broker, one twice, one that is not there: INVALID_REPLICA_ASSIGNMENT, and nothing is written."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2,))
    verdicts = cluster.run(reassignment.reassign(cluster.context, {key("t"): target}))
    assert verdicts == {key("t"): ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert cluster.assignment("t") == Assignment({0: (2,)})


def test_changed_in_sync_sets_are_told() -> None:
    """Notices of leaders: everybody is told, and the notices are removed, also those that cannot be read."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    cluster.in_sync("t", (2,))
    cluster.sent.clear()
    cluster.put(f"{paths.ISR_CHANGES}/isr_change_0000000000", texts.encode_partitions([("t", 0), ("x", 1)]))
    assert [row.isr for row in cluster.told(TELL, 3)] == [[2]]
    cluster.put(f"{paths.ISR_CHANGES}/isr_change_0000000001", b"\xff")
    assert cluster.admin.perform(Get(paths.ISR_CHANGES)).value == b""
    assert not cluster.is_there(f"{paths.ISR_CHANGES}/isr_change_0000000001")


def test_replicas_on_a_failed_disk_lead_nothing() -> None:
    """A disk that failed: the broker is asked, answers 56 for what was on it, and others lead that."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3), (2, 3))
    cluster.sent.clear()
    cluster.put(f"{paths.LOG_DIR_EVENTS}/log_dir_event_0000000000", b'{"version":1,"broker":2,"event":1}')
    (asked,) = [message for message in cluster.sent if message.key is LEAD]
    rows = [Struct(topic="t", index=0, error=0), Struct(topic="t", index=1, error=56)]
    cluster.run(office.answered(cluster.context, asked, Struct(error=0, partitions=rows)))
    assert cluster.state("t", 0).leader == 2
    assert cluster.state("t", 1) == PartitionState(3, 1, (3,), 1)


@pytest.mark.parametrize("path", [paths.topic("bad"), paths.broker(7)])
def test_garbage_in_a_node_costs_itself(path: str) -> None:
    """Issue 26 must-show 6: a node nobody can read is passed over; everything else goes on."""
    cluster = Cluster(1, 2)
    cluster.put(path, b"{garbage")
    cluster.create("t", (1, 2))
    cluster.kill(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(1, 1, (1,), 1)


def test_garbage_in_a_state_is_written_over_by_the_next_decision() -> None:
    """Issue 26 must-show 6: what was known of the partition stands, and the controller does not try for ever."""
    cluster = Cluster(1, 2, 3)
    cluster.create("t", (2, 3))
    node = cluster.admin.perform(Get(paths.state("t", 0)))
    cluster.admin.perform(Set(paths.state("t", 0), b"garbage", node.version))
    cluster.kill(2)
    cluster.settle()
    assert cluster.state("t") == PartitionState(3, 1, (3,), 1)


def test_a_topic_without_replicas_costs_itself() -> None:
    """A partition that nobody holds is led by nobody; elections and balance pass over it."""
    cluster = Cluster(1, 2)
    cluster.create("none", ())
    cluster.create("t", (1, 2))
    cluster.run(leadership.balance(cluster.context, 0))
    verdicts = cluster.run(leadership.elect(cluster.context, [key("t"), key("none")], unclean=False))
    assert verdicts[key("t")] is ErrorCode.ELECTION_NOT_NEEDED
