"""What brokers and topics there are, read from their nodes into the context, with watches left on them."""

from __future__ import annotations

from collections.abc import Iterable

from kafka2011.types import TopicPartition
from since2011.controller.context import Context, topic_of
from since2011.controller.steps import Steps, guarded, read
from since2011.topics.image import BrokerImage
from zk_registry.modern import paths, texts
from zk_registry.modern.registry import parse_brokers
from zk_registry.operations import Children, Set


def read_brokers(context: Context) -> Steps[dict[int, BrokerImage]]:
    """The brokers that are registered now; each one's node is watched."""
    names = yield Children(paths.BROKER_IDS, context.watch(paths.BROKER_IDS))
    nodes = yield from read(context, [f"{paths.BROKER_IDS}/{name}" for name in names])
    parsed = {}
    for path, node in nodes.items():
        try:
            parsed[path] = texts.parse_broker(node.value), node
        except ValueError:
            continue  # told of once by who reads it for the image
    return {
        broker_id: BrokerImage(broker_id, entry.endpoints, entry.rack, epoch, entry.version >= 5)
        for broker_id, (entry, epoch) in parse_brokers(parsed).items()
        if entry.endpoints
    }


def read_topics(context: Context, names: Iterable[str]) -> Steps[list[TopicPartition]]:
    """Read the nodes of topics; the partitions of which no state is known."""
    nodes = yield from read(context, [paths.topic(name) for name in names])
    new = []
    for path, node in nodes.items():
        name = path.rpartition("/")[2]
        before = context.topics.get(name)
        try:
            after = topic_of(name, texts.parse_assignment(node.value), node.version, before)
        except ValueError:
            continue  # what was known of it stands
        if before is not None and before.topic_id != after.topic_id:
            before = None
            after = topic_of(name, after.assignment(), node.version)
        known = {} if before is None else before.partitions
        grown = [TopicPartition(name, index) for index in after.partitions if index not in known]
        if name in context.deletions and before is not None and grown:
            # A topic that is being deleted does not grow.
            yield from guarded(context, [(Set(path, before.assignment().encode(), node.version),)])
            continue
        context.topics[name] = after
        new += [TopicPartition(name, index) for index, partition in after.partitions.items() if partition.state is None]
    return new
