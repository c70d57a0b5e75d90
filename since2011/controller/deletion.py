"""Deleting a topic: from the node that asks for it to the last replica that says it is gone.

    /admin/delete_topics/t      everybody forgets its partitions, its replicas are told to delete themselves
    a replica answers           it is waited for no longer
    a broker is away            its replica is told when it comes back; until then the topic's nodes stay
    the last has answered       the nodes go: states, topic, settings, and at last the one that asked

A controller that takes over begins again: who has deleted a replica already says so at once.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka2011.types import TopicPartition
from since2011.controller.context import Context, Deletion
from since2011.controller.outbox import DELETED
from since2011.controller.reading import read_topics
from since2011.controller.steps import Steps, Write, guarded, send
from zk_registry.modern import paths
from zk_registry.operations import Children, Delete, NoNode


def deletions_changed(context: Context) -> Steps[None]:
    """Look which topics are to be deleted."""
    names: tuple[str, ...] = yield Children(paths.DELETIONS, context.watch(paths.DELETIONS))
    wanted = set(names) - context.deletions.keys()
    yield from read_topics(context, wanted - context.topics.keys())  # it may be as new as the wish to delete it
    nothing = wanted - context.topics.keys() if context.rules.deletes else wanted
    yield from guarded(context, [(Delete(paths.deletion(name)),) for name in sorted(nothing)])
    yield from begin(context, wanted - nothing)


def begin(context: Context, names: Collection[str]) -> Steps[None]:
    """Delete these topics."""
    for name in sorted(names):
        topic = context.topics[name]
        keys = [TopicPartition(name, index) for index in topic.partitions]
        waiting = {(broker, key) for key in keys for broker in context[key].replicas}
        context.deletions[name] = Deletion(waiting)
        context.asked_by_node.difference_update(keys)
        context.outbox.deleted(keys)
        _tell(context, name, context.brokers)
    yield from send(context)
    yield from resume(context)


def resume(context: Context, came: Collection[int] = ()) -> Steps[None]:
    """Tell brokers that came what to delete, and finish what nobody is waited for any more."""
    for name in context.deletions:
        _tell(context, name, came)
    yield from send(context)
    for name in [name for name, deletion in context.deletions.items() if not deletion.waiting]:
        yield from _finish(context, name)


def answered(context: Context, broker: int, gone: Collection[TopicPartition]) -> Steps[None]:
    """A broker has deleted these replicas."""
    for key in gone:
        deletion = context.deletions.get(key.topic)
        if deletion is not None:
            deletion.waiting.discard((broker, key))
    yield from resume(context)


def _tell(context: Context, name: str, brokers: Collection[int]) -> None:
    for broker, key in context.deletions[name].waiting:
        if broker in brokers:
            context.outbox.stop(broker, key, DELETED, delete=True)


def _finish(context: Context, name: str) -> Steps[None]:
    """Remove the nodes of a topic nobody holds any more, leaves first."""
    try:
        indexes: tuple[str, ...] = yield Children(paths.partitions(name))
    except NoNode:
        indexes = ()
    leaves: list[tuple[Write, ...]] = [
        (Delete(f"{paths.partitions(name)}/{index}/state"), Delete(f"{paths.partitions(name)}/{index}"))
        for index in indexes
    ]
    refused = yield from guarded(context, leaves)
    stateless = [leaf for leaf, refusal in zip(leaves, refused, strict=True) if isinstance(refusal, NoNode)]
    yield from guarded(context, [leaf[1:] for leaf in stateless])
    above = (paths.partitions(name), paths.topic(name), paths.config(f"topics/{name}"), paths.deletion(name))
    for path in above:
        (refusal,) = yield from guarded(context, [(Delete(path),)])
        if refusal is not None and not isinstance(refusal, NoNode):
            raise refusal
    context.forget([name])
