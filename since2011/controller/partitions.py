"""Partitions come to life, lose their leaders and get others: what the controller does when topics or brokers change.

    made              first living replica leads, all living ones are in sync; without one it waits for a broker
    its leader dies   another of the in-sync set leads; without one nobody does, and the set remembers who may
    a replica dies    it leaves the in-sync set (the last never does)
    a broker comes    it is told what it holds, and what was waiting for it gets a leader

The paper's answer (§3.2): a partition is where its broker is; a broker that is gone has taken its partitions with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka2011.types import TopicPartition
from since2011.controller import elections
from since2011.controller.context import Context, Partition
from since2011.controller.elections import Elected
from since2011.controller.steps import Choose, Steps, decide, guarded, read_states
from zk_registry.modern import paths
from zk_registry.modern.texts import PartitionState
from zk_registry.operations import Create, NodeExists, NoNode, RegistryError


def create(context: Context, keys: Iterable[TopicPartition]) -> Steps[list[TopicPartition]]:
    """Give partitions without a state their first one and tell their replicas; those that have one now."""
    first: dict[TopicPartition, PartitionState] = {}
    for key in keys:
        partition = context[key]
        elected = elections.created(partition.replicas, context.alive(key, partition.replicas))
        if elected is not None and partition.state is None:
            first[key] = PartitionState(elected.leader, 0, elected.isr, context.epoch)
    parents = dict.fromkeys(paths.partitions(key.topic) for key in first)
    _passed(*(yield from guarded(context, [(Create(path, None),) for path in parents])))
    nodes = [
        (
            Create(paths.partition(key.topic, key.partition), None),
            Create(paths.state(key.topic, key.partition), state.encode()),
        )
        for key, state in first.items()
    ]
    refusals = yield from guarded(context, nodes)
    half = [key for key, refusal in zip(first, refusals, strict=True) if isinstance(refusal, NodeExists)]
    _passed(*refusals)
    # What a controller that crashed in the middle has left: the parent, or everything.
    again = [(Create(paths.state(key.topic, key.partition), first[key].encode()),) for key in half]
    found = [
        key
        for key, refusal in zip(half, (yield from guarded(context, again)), strict=True)
        if isinstance(refusal, NodeExists)
    ]
    for key, refusal in zip(first, refusals, strict=True):
        if key not in found and not isinstance(refusal, NoNode):
            context[key].state, context[key].version = first[key], 0
    yield from read_states(context, found)
    made = [key for key in first if context[key].state is not None]
    for key in made:
        replicas = context.present(key, context[key].replicas)
        context.outbox.lead_or_follow(key, replicas, new=replicas)
    return made


def _passed(*refusals: RegistryError | None) -> None:
    """Raise what is neither that somebody was faster nor that the topic is gone."""
    for refusal in refusals:
        if refusal is not None and not isinstance(refusal, NodeExists | NoNode):
            raise refusal


def settle(context: Context, keys: Iterable[TopicPartition]) -> Steps[list[TopicPartition]]:
    """Let each partition be led by one that lives, as far as that can be, and tell its replicas; those changed."""
    wanted = list(keys)
    made = yield from create(context, [key for key in wanted if context[key].state is None])

    def choose(key: TopicPartition, partition: Partition) -> Elected | None:
        assert partition.state is not None
        leader, present = partition.state.leader, context.present(key, partition.replicas)
        return elections.settled(
            partition.replicas,
            leader,
            partition.state.isr,
            present=present,
            alive=context.alive(key, partition.replicas),
            unclean=leader not in present and context.rules.unclean(key.topic),
        )

    return made + (yield from decide_and_tell(context, wanted, choose))


def decide_and_tell(context: Context, keys: Iterable[TopicPartition], choose: Choose) -> Steps[list[TopicPartition]]:
    """Decide about partitions, and tell the living replicas of those that have changed."""
    changed = yield from decide(context, keys, choose)
    for key in changed:
        context.outbox.lead_or_follow(key, context.present(key, context[key].replicas))
    return changed


def tell_replicas(context: Context, brokers: Collection[int]) -> None:
    """Tell these brokers what they are to lead and to follow."""
    for key in context.of_brokers(brokers):
        partition = context[key]
        if partition.state is not None:
            context.outbox.lead_or_follow(key, [one for one in partition.replicas if one in brokers])
