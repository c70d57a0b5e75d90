"""Lines 3-5 and 11 of Algorithm 1: read the registries, leaving a watch on everything read.

A watch set by the very read that decided cannot miss a change after it. A node that vanishes while we read is simply
gone: the watch on its parent has fired, and the rebalance runs again.

Paper: §3.2, "each consumer ... registers a watcher".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from consumers.algorithm1.assign import ThreadId
from consumers.algorithm1.steps import Owned, Steps
from consumers.events import OffsetUnreadable
from kafka2011.types import BrokerAddress, BrokerPartition, is_legal_name
from zk_registry import paths
from zk_registry.brokers import parse_broker, parse_partition_count
from zk_registry.consumers import Subscription, parse_subscription
from zk_registry.events import NodeIgnored
from zk_registry.offsets import parse_offset
from zk_registry.operations import Children, Exists, Get, Node, NoNode, Sync

if TYPE_CHECKING:
    from consumers.algorithm1.member import Member


@dataclass(slots=True)
class View:
    """What one member saw: who is in the group, partitions and threads of each topic, and where the brokers are."""

    members: dict[str, Subscription] = field(default_factory=dict)
    sessions: set[int] = field(default_factory=set)
    """Of everybody in the group, whether its subscription can be read or not."""
    partitions: dict[str, list[BrokerPartition]] = field(default_factory=dict)
    threads: dict[str, list[ThreadId]] = field(default_factory=dict)
    addresses: dict[int, BrokerAddress] = field(default_factory=dict)


def subscribed_topics(member: Member) -> Steps[list[str]]:
    """The topics this member wants: its fixed list, or those that its filter matches right now."""
    names = member.subscription.topics
    if names is None:
        names = yield from children(paths.BROKER_TOPICS)
    member.topics = sorted(name for name in names if is_legal_name(name) and member.subscription.streams_of(name))
    return member.topics


def read_registries(member: Member, topics: Iterable[str]) -> Steps[View]:
    """Line 3: the consumer registry of our group and the broker registry for ``topics``."""
    view = View()
    if member.edition.fenced:
        # A follower may lag behind: what we decide on must not be older than our own registration.
        yield Sync(paths.group(member.group))
    subscriptions = view.members
    for consumer_id in (yield from children(paths.consumer_ids(member.group))):
        node = yield from found(f"{paths.consumer_ids(member.group)}/{consumer_id}")
        text = None if node is None else node.value
        if node is not None and node.ephemeral_owner:
            view.sessions.add(node.ephemeral_owner)
        subscription = None if text is None else parse_subscription(text)
        if subscription is not None:
            subscriptions[consumer_id] = subscription
        elif text is not None and consumer_id not in member.unreadable:
            member.unreadable.add(consumer_id)
            path = paths.consumer_id(member.group, consumer_id)
            member.emit(NodeIgnored(path=path, reason="no subscription, or a filter that could take too long"))
    if subscriptions.get(member.consumer_id) != member.subscription:
        yield from member.enter_again()
        subscriptions[member.consumer_id] = member.subscription
    for broker in (yield from children(paths.BROKER_IDS)):
        text = yield from value(f"{paths.BROKER_IDS}/{broker}")
        address = None if text is None else parse_broker(broker, text)
        if address is not None:
            view.addresses[address.broker_id] = address
    for topic in topics:
        view.threads[topic] = [
            ThreadId(consumer_id, index)
            for consumer_id, subscription in subscriptions.items()
            for index in range(subscription.streams_of(topic))
        ]
        view.partitions[topic] = []
        for broker in (yield from children(paths.topic(topic))):
            if not broker.isdigit() or int(broker) not in view.addresses:
                continue
            # The partition count may grow: watched as well.
            text = yield from value(f"{paths.topic(topic)}/{broker}", watch=True)
            count = 0 if text is None else parse_partition_count(text) or 0
            view.partitions[topic] += [BrokerPartition(int(broker), n) for n in range(count)]
    member.saw(view)
    return view


def read_offset(member: Member, owned: Owned) -> Steps[int | None]:
    """Line 11: the stored offset of a partition; None if there is none, or none that can be read."""
    text = yield from value(paths.offset(member.group, owned.topic, owned.partition))
    offset = None if text is None else parse_offset(text)
    if text is not None and offset is None:
        member.emit(
            OffsetUnreadable(
                group=member.group,
                consumer=member.consumer_id,
                topic=owned.topic,
                partition=owned.partition,
                text=text[:40].decode("utf-8", "replace"),
            )
        )
    known, left_at = member.offsets.stored(owned), member.left_at.get(owned)
    member.offsets.learned(owned, offset, exists=text is not None)
    if left_at is None or not member.edition.remembers or not _within(known, offset, left_at):
        # Somebody read further, or moved the group; also for a later attempt, where we left it no longer counts.
        member.left_at.pop(owned, None)
        return offset
    return left_at


def _within(known: int | None, offset: int | None, left_at: int) -> bool:
    """Whether everything from the stored ``offset`` up to ``left_at`` was finished by our own application.

    It finished all from ``known``, the offset it last knew to be stored, up to where it left. So a member that gets
    back what it let go, or lost with its session, goes on from where its application really is.
    """
    return offset == known or (known is not None and offset is not None and known <= offset <= left_at)


def children(path: str) -> Steps[tuple[str, ...]]:
    """Names under ``path``, watched; a parent that does not exist yet is watched for its creation."""
    while True:
        try:
            names: tuple[str, ...] = yield Children(path, watch=True)
            return names
        except NoNode:
            if (yield Exists(path, watch=True)) is None:
                return ()


def value(path: str, *, watch: bool = False) -> Steps[bytes | None]:
    """The value of a node, None if it is gone."""
    node = yield from found(path, watch=watch)
    return None if node is None else node.value


def found(path: str, *, watch: bool = False) -> Steps[Node | None]:
    """A node with its value, None if it is gone."""
    try:
        node: Node = yield Get(path, watch)
    except NoNode:
        return None
    return node
