"""The office of controller: how it is won, what is done first, and what is done when a node changes.

    run       /controller is created and /controller_epoch raised in one transaction: of two one is refused
    take      everything is read; every broker learns who lives, then what it leads and follows, then everything
    serve     each change of a node and each answer of a broker, one after the other (``changed``, ``answered``)
    resign    nothing is sent; whoever is elected next reads everything

The paper's answer (§3.2): there is no office. Every consumer decides by itself, and two may claim the same.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka2011.types import TopicPartition
from since2011.controller import deletion, leadership, membership, reassignment, topic_changes
from since2011.controller.context import Context, Rules
from since2011.controller.outbox import Message
from since2011.controller.partitions import settle, tell_replicas
from since2011.controller.reading import read_brokers, read_topics
from since2011.controller.steps import Steps, guarded, read, read_states, send
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from zk_registry.modern import paths, texts
from zk_registry.operations import (
    BadVersion,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    NodeExists,
    NoNode,
    Set,
)


def run_for_office(broker_id: int, session_id: int, now_ms: int, rules: Rules) -> Steps[Context | None]:
    """Be the controller, if nobody is; None if another is. In office already, of this session: the same office."""
    while True:
        try:
            held: Node | None = yield Exists(paths.CONTROLLER, watch=True)
            node: Node = yield Get(paths.CONTROLLER_EPOCH)
        except NoNode:
            try:
                yield Create(paths.CONTROLLER_EPOCH, b"0")
            except NodeExists:
                pass
            continue
        epoch = int(node.value) if node.value.isdigit() else 0
        if held is not None:
            mine = held.ephemeral_owner == session_id
            return Context(broker_id, epoch, node.version, rules) if mine else None
        claim = Create(paths.CONTROLLER, texts.encode_controller(broker_id, now_ms), ephemeral=True)
        try:
            yield Multi((claim, Set(paths.CONTROLLER_EPOCH, str(epoch + 1).encode(), node.version)))
        except (NodeExists, BadVersion):
            continue
        return Context(broker_id, epoch + 1, node.version + 1, rules)


def take_office(context: Context) -> Steps[None]:
    """Read everything, tell everybody, and go on with what was under way."""
    for parent in (paths.ISR_CHANGES, paths.LOG_DIR_EVENTS):
        # What they announce is read next.
        names: tuple[str, ...] = yield Children(parent, context.watch(parent))
        yield from guarded(context, [(Delete(f"{parent}/{name}"),) for name in names])
    context.brokers = yield from read_brokers(context)
    topics: tuple[str, ...] = yield Children(paths.TOPICS, context.watch(paths.TOPICS))
    keys = yield from read_topics(context, topics)
    yield from read_states(context, keys)
    context.outbox.tell_all(context)
    yield from send(context)
    yield from deletion.deletions_changed(context)
    tell_replicas(context, context.brokers.keys())
    yield from settle(context, [key for key, _ in context.partitions()])
    context.outbox.tell_all(context, [key for key, partition in context.partitions() if partition.state is not None])
    yield from send(context)
    yield from reassignment.resume(context)
    yield from reassignment.node_changed(context)
    yield from leadership.preferred_node_changed(context)


def changed(context: Context, noted: Collection[str]) -> Steps[None]:
    """What lies at these paths has changed, or may have."""
    context.watched.difference_update(noted)
    if any(path.startswith(paths.BROKER_IDS) for path in noted):
        yield from membership.brokers_changed(context)
    if paths.TOPICS in noted:
        yield from topic_changes.topics_changed(context)
    grown = {path.rpartition("/")[2] for path in noted if path.rpartition("/")[0] == paths.TOPICS}
    if grown:
        yield from topic_changes.topics_written(context, grown & context.topics.keys())
    if paths.DELETIONS in noted:
        yield from deletion.deletions_changed(context)
    if paths.ISR_CHANGES in noted:
        yield from _in_sync_sets_changed(context)
    states = {TopicPartition(*found) for path in noted if (found := paths.partition_of_state(path)) is not None}
    if states:
        yield from reassignment.states_changed(context, states)
    if paths.REASSIGNMENT in noted:
        yield from reassignment.node_changed(context)
    if paths.PREFERRED_ELECTION in noted:
        yield from leadership.preferred_node_changed(context)
    if paths.LOG_DIR_EVENTS in noted:
        yield from _disks_failed(context)


def answered(context: Context, message: Message, body: Struct) -> Steps[None]:
    """A broker has answered a request."""
    broker = message.broker.broker_id
    known = context.brokers.get(broker)
    if known is None or known.epoch != message.broker.epoch or message.key is ApiKey.UPDATE_METADATA:
        return
    rows = {TopicPartition(row.topic, row.index): row.error for row in body.partitions}
    if message.key is ApiKey.STOP_REPLICA:
        gone = {key for key, error in rows.items() if error == ErrorCode.NONE}
        yield from deletion.answered(context, broker, gone)
        return
    failed = {(broker, key) for key, error in rows.items() if error == ErrorCode.KAFKA_STORAGE_ERROR}
    well = {(broker, key) for key, error in rows.items() if error == ErrorCode.NONE} & context.failed
    new = failed - context.failed
    context.failed = (context.failed | failed) - well
    yield from settle(context, [key for _, key in sorted(new | well) if context.partition(key) is not None])
    yield from send(context)


def settings_changed(context: Context) -> Steps[None]:
    """A replica that is behind may perhaps lead now."""
    yield from settle(context, leadership.leaderless(context))
    yield from send(context)


def _in_sync_sets_changed(context: Context) -> Steps[None]:
    """Leaders have changed in-sync sets, and left notices of it: everybody is to know."""
    names: tuple[str, ...] = yield Children(paths.ISR_CHANGES, context.watch(paths.ISR_CHANGES))
    notices = [f"{paths.ISR_CHANGES}/{name}" for name in names]
    keys: set[TopicPartition] = set()
    for node in (yield from read(context, notices, watch=False)).values():
        try:
            keys |= {TopicPartition(*key) for key in texts.parse_partitions(node.value)}
        except ValueError:
            continue  # it is removed with the others
    known = sorted(key for key in keys if context.partition(key) is not None)
    yield from read_states(context, known)
    context.outbox.tell_all(context, known)
    yield from send(context)
    yield from reassignment.finish(context, known)
    yield from guarded(context, [(Delete(path),) for path in notices])


def _disks_failed(context: Context) -> Steps[None]:
    """Brokers have lost disks: their answers to LeaderAndIsr tell which replicas were on them."""
    names: tuple[str, ...] = yield Children(paths.LOG_DIR_EVENTS, context.watch(paths.LOG_DIR_EVENTS))
    notices = [f"{paths.LOG_DIR_EVENTS}/{name}" for name in names]
    for node in (yield from read(context, notices, watch=False)).values():
        try:
            tell_replicas(context, {texts.parse_log_dir_event(node.value)})
        except ValueError:
            continue
    yield from send(context)
    yield from guarded(context, [(Delete(path),) for path in notices])
