"""Who leads is changed though nobody died: on request, for balance, or because a broker is about to stop.

| asked | the new leader | where it cannot be |
|---|---|---|
| preferred | the first of the assignment, if it lives and is in sync | 80 |
| unclean | where nobody leads: in sync, else any that lives; what only others had is lost | 83 |
| neither needed | | 84 |
| controlled shutdown | the first in sync that stays; the broker leaves all in-sync sets | it stays, and is told |
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka2011.types import TopicPartition
from since2011.controller import elections
from since2011.controller.context import Context, Partition
from since2011.controller.elections import Elected
from since2011.controller.partitions import decide_and_tell
from since2011.controller.steps import Steps, appears, guarded, read_states, send
from since2011.wire.error_codes import ErrorCode
from zk_registry.modern import paths, texts
from zk_registry.modern.texts import NO_LEADER
from zk_registry.operations import Delete

Verdicts = dict[TopicPartition, ErrorCode]


def elect(context: Context, keys: Iterable[TopicPartition], *, unclean: bool) -> Steps[Verdicts]:
    """Let the preferred replica lead, or with ``unclean`` any that lives where none does: the verdict on each."""
    wanted = [key for key in keys if context.partition(key) is not None and key.topic not in context.deletions]
    verdicts = dict.fromkeys(keys, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    yield from read_states(context, wanted)

    def choose(key: TopicPartition, partition: Partition) -> Elected | None:
        assert partition.state is not None
        leader, isr = context.leader(key), partition.state.isr
        alive = context.alive(key, partition.replicas)
        if leader in alive if unclean else partition.replicas[:1] == (leader,) and leader in alive:
            verdicts[key] = ErrorCode.ELECTION_NOT_NEEDED
            return None
        if unclean:
            elected = elections.offline(partition.replicas, isr, alive, unclean=True)
            verdicts[key] = ErrorCode.NONE if elected else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        else:
            elected = elections.preferred(partition.replicas, isr, alive)
            verdicts[key] = ErrorCode.NONE if elected else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return elected

    yield from decide_and_tell(context, wanted, choose)
    yield from send(context)
    return verdicts


def preferred_node_changed(context: Context) -> Steps[None]:
    """An old tool asks for preferred leaders, by a node."""
    node = yield from appears(context, paths.PREFERRED_ELECTION)
    if node is None:
        return
    try:
        wanted = [TopicPartition(*key) for key in texts.parse_partitions(node.value)]
    except ValueError:
        wanted = []  # nobody can do what nobody can read
    yield from elect(context, wanted, unclean=False)
    yield from guarded(context, [(Delete(paths.PREFERRED_ELECTION),)])


def balance(context: Context, percent: int) -> Steps[None]:
    """Let brokers lead again that lead too few: more than ``percent`` of the partitions they are first in."""
    first: dict[int, list[TopicPartition]] = {}
    for key, partition in context.partitions():
        if partition.replicas and not partition.is_moving:
            first.setdefault(partition.replicas[0], []).append(key)
    for broker, keys in first.items():
        lost = [key for key in keys if context.leader(key) != broker]
        if broker in context.brokers and len(lost) * 100 > percent * len(keys):
            yield from elect(context, lost, unclean=False)


def shut_down(context: Context, broker: int, epoch: int) -> Steps[tuple[ErrorCode, list[TopicPartition]]]:
    """A broker is about to stop: what it still leads when others lead whatever they can."""
    known = context.brokers.get(broker)
    if known is None:
        return ErrorCode.BROKER_NOT_AVAILABLE, []
    if 0 <= epoch < known.epoch:
        return ErrorCode.STALE_BROKER_EPOCH, []
    context.shutting_down.add(broker)
    keys = [key for key in context.of_brokers([broker]) if len(context[key].replicas) > 1]

    def choose(key: TopicPartition, partition: Partition) -> Elected | None:
        assert partition.state is not None
        leader, isr = partition.state.leader, partition.state.isr
        if leader == broker:
            here = context.present(key, partition.replicas)
            return elections.controlled_shutdown(partition.replicas, isr, here, context.shutting_down)
        if broker not in isr or isr == (broker,):
            return None
        return Elected(*elections.without(isr, leader, broker))

    changed = yield from decide_and_tell(context, keys, choose)
    for key in changed:
        state = context[key].state
        assert state is not None
        # It need not copy any more: or it would be in sync again, and waited for, just before it goes.
        context.outbox.stop(broker, key, state.leader_epoch, delete=False)
    yield from send(context)
    left = [key for key in keys if (state := context[key].state) is not None and state.leader == broker]
    return ErrorCode.NONE, left


def leaderless(context: Context) -> list[TopicPartition]:
    """Partitions nobody leads."""
    return [key for key, _ in context.partitions() if context.leader(key) == NO_LEADER]
