"""Moving replicas to other brokers while the partition is read and written.

    asked        the topic's node names old and new replicas, which come and which go; a new leader epoch
    copying      the new ones follow and join the in-sync set (each state node is watched)
    all in sync  the leader is one of the new ones, the in-sync set holds nobody else: a new leader epoch
    done         those that go are told to delete what they have, the topic's node names the new replicas

Whoever takes over in the middle finds in the topic's node how far it was. A move that is cancelled is a move back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka2011.types import TopicPartition
from since2011.controller import elections
from since2011.controller.context import Context, Partition
from since2011.controller.elections import Elected
from since2011.controller.reading import read_topics
from since2011.controller.steps import Steps, appears, decide, guarded, read_states, send
from since2011.wire.error_codes import ErrorCode
from zk_registry.modern import paths, texts
from zk_registry.modern.texts import NO_LEADER
from zk_registry.operations import BadVersion, Delete, Set

Target = tuple[int, ...]
Verdicts = dict[TopicPartition, ErrorCode]


def reassign(context: Context, wanted: Mapping[TopicPartition, Target | None]) -> Steps[Verdicts]:
    """Move partitions to these brokers, or with None cancel the move under way: the verdict on each."""
    verdicts, targets = {}, {}
    for key, target in wanted.items():
        verdicts[key] = refusal(context, key, target)
        if verdicts[key] is ErrorCode.NONE and (target is None or not _lies_there(context[key], target)):
            targets[key] = context[key].origin if target is None else target
    yield from move(context, targets)
    return verdicts


def refusal(context: Context, key: TopicPartition, target: Target | None) -> ErrorCode:
    """Why a partition cannot be moved there; NONE if it can."""
    partition = context.partition(key)
    if partition is None or partition.state is None or key.topic in context.deletions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if target is None:
        return ErrorCode.NONE if partition.is_moving else ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    legal = target and len(set(target)) == len(target) and set(target) <= context.brokers.keys()
    return ErrorCode.NONE if legal else ErrorCode.INVALID_REPLICA_ASSIGNMENT


def move(context: Context, targets: Mapping[TopicPartition, Target]) -> Steps[None]:
    """Begin to move these partitions; what needs no copying is done at once."""
    dropped = {}
    for key, target in targets.items():
        partition = context[key]
        before, origin = partition.replicas, partition.origin
        partition.replicas = (*target, *(one for one in origin if one not in target))
        partition.adding = tuple(one for one in partition.replicas if one not in origin)
        partition.removing = tuple(one for one in partition.replicas if one not in target)
        dropped[key] = tuple(one for one in before if one not in partition.replicas)
    yield from _write_topics(context, targets)

    def choose(key: TopicPartition, partition: Partition) -> Elected | None:
        assert partition.state is not None
        staying = tuple(one for one in partition.state.isr if one not in dropped[key]) or partition.state.isr
        leader = partition.state.leader
        return Elected(leader if leader in staying else NO_LEADER, staying)

    begun = yield from decide(context, targets, choose)
    for key in begun:
        partition = context[key]
        here = context.present(key, partition.replicas)
        context.outbox.lead_or_follow(key, here, new=partition.adding)
        _stop(context, key, dropped[key])
    yield from send(context)
    context.asked_by_node -= {key for key in targets if not context[key].is_moving}  # only the order was another
    yield from read_states(context, targets, watch=True)
    yield from finish(context, targets)


def resume(context: Context) -> Steps[None]:
    """Go on with every move that has been begun."""
    moving = [key for key, partition in context.partitions() if partition.is_moving]
    yield from read_states(context, moving, watch=True)
    yield from finish(context, moving)


def states_changed(context: Context, keys: Iterable[TopicPartition]) -> Steps[None]:
    """A leader has changed the in-sync sets of partitions that move."""
    here = [key for key in keys if context.partition(key) is not None]
    yield from read_states(context, here, watch=True)
    yield from finish(context, here)


def finish(context: Context, keys: Iterable[TopicPartition]) -> Steps[None]:
    """End the moves whose new replicas are all in sync."""
    ready = [key for key in keys if _is_ready(context, key)]
    going = {key: context[key].removing for key in ready}

    def choose(key: TopicPartition, partition: Partition) -> Elected | None:
        assert partition.state is not None
        target, state = partition.target, partition.state
        staying = tuple(one for one in state.isr if one in target)
        if not set(target) <= set(staying):
            return None  # one has fallen behind meanwhile
        if state.leader in context.alive(key, target):
            return Elected(state.leader, staying)
        elected = elections.reassigned(target, staying, context.alive(key, target))
        return None if elected is None else Elected(elected.leader, staying)

    done = yield from decide(context, ready, choose)
    for key in done:
        partition = context[key]
        partition.replicas, partition.adding, partition.removing = partition.target, (), ()
        context.outbox.lead_or_follow(key, context.present(key, partition.replicas))
        _stop(context, key, going[key])
    yield from send(context)
    yield from _write_topics(context, done)
    context.asked_by_node.difference_update(done)
    if done and not context.asked_by_node:
        yield from guarded(context, [(Delete(paths.REASSIGNMENT),)])


def _lies_there(partition: Partition, target: Target) -> bool:
    """Whether it lies there, or is on its way."""
    return partition.target == target


def _is_ready(context: Context, key: TopicPartition) -> bool:
    partition = context.partition(key)
    if partition is None or partition.state is None or key.topic in context.deletions:
        return False
    return partition.is_moving and set(partition.target) <= set(partition.state.isr)


def _stop(context: Context, key: TopicPartition, replicas: Iterable[int]) -> None:
    state = context[key].state
    assert state is not None
    for broker in replicas:
        context.outbox.stop(broker, key, state.leader_epoch, delete=True)


def _write_topics(context: Context, keys: Iterable[TopicPartition]) -> Steps[None]:
    """Write where partitions lie; a topic that somebody let grow meanwhile is read again before."""
    for name in dict.fromkeys(key.topic for key in keys):
        while True:
            topic = context.topics[name]
            write = Set(paths.topic(name), topic.assignment().encode(), topic.version)
            (refused,) = yield from guarded(context, [(write,)])
            if refused is None:
                topic.version += 1
                break
            if not isinstance(refused, BadVersion):
                break  # it is gone
            moved = dict(topic.partitions)
            yield from read_topics(context, [name])
            context.topics[name].partitions |= moved


def node_changed(context: Context) -> Steps[None]:
    """An old tool asks for moves, by a node."""
    node = yield from appears(context, paths.REASSIGNMENT)
    if node is None:
        context.asked_by_node.clear()
        return
    try:
        wanted = {TopicPartition(*key): target for key, target in texts.parse_reassignment(node.value).items()}
    except ValueError:
        wanted = {}  # nobody can do what nobody can read
    targets = {
        key: target
        for key, target in wanted.items()
        if refusal(context, key, target) is ErrorCode.NONE and not _lies_there(context[key], target)
    }
    moving = {key for key in wanted if (found := context.partition(key)) is not None and found.is_moving}
    context.asked_by_node |= moving | targets.keys()
    yield from move(context, targets)
    if not context.asked_by_node:
        yield from guarded(context, [(Delete(paths.REASSIGNMENT),)])
