"""What is to be told to which broker: collected in one step of the controller, sent as few requests.

Each broker gets at most one request of each kind for a step, in this order: LeaderAndIsr (lead, follow), UpdateMetadata
(who lives, who leads), StopReplica (do neither, perhaps delete). Whoever is told to lead or follow, everybody is told
of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.topics.image import BrokerImage
from since2011.wire.codec import ApiKey, Struct
from zk_registry.modern.texts import Endpoint

if TYPE_CHECKING:
    from since2011.controller.context import Context

DELETED = -2
"""The leader, and the leader epoch, of a partition that is being deleted."""
LISTENER = "PLAINTEXT"
_SECURITY = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class Message:
    """A request for one broker, in one life of it."""

    broker: BrokerImage
    key: ApiKey
    body: Struct


class Outbox:
    """What was decided and is not told yet. Thread: one."""

    def __init__(self) -> None:
        self._lead: dict[int, dict[TopicPartition, bool]] = {}
        self._stop: dict[int, dict[TopicPartition, tuple[int, bool]]] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._deleted: dict[TopicPartition, None] = {}
        self._tell: set[int] = set()

    def lead_or_follow(self, key: TopicPartition, brokers: Iterable[int], *, new: Collection[int] = ()) -> None:
        """Tell ``brokers`` the state of a partition; ``new``: those for which the replica is new."""
        for broker in brokers:
            told = self._lead.setdefault(broker, {})
            told[key] = told.get(key, False) or broker in new
        self._changed[key] = None

    def tell_all(self, context: Context, keys: Iterable[TopicPartition] = ()) -> None:
        """Tell everybody of these partitions, or with none only who lives."""
        self.tell(context.brokers, keys)

    def tell(self, brokers: Iterable[int], keys: Iterable[TopicPartition] = ()) -> None:
        """Tell these brokers the state of partitions that is known to others."""
        self._tell.update(brokers)
        self._changed.update(dict.fromkeys(keys))

    def deleted(self, keys: Iterable[TopicPartition]) -> None:
        """Everybody is to forget these partitions."""
        self._deleted.update(dict.fromkeys(keys))

    def stop(self, broker: int, key: TopicPartition, leader_epoch: int, *, delete: bool) -> None:
        """Tell ``broker`` to hold this replica no longer, or only to serve and copy it no longer."""
        self._stop.setdefault(broker, {})[key] = (leader_epoch, delete)

    def flush(self, context: Context) -> tuple[Message, ...]:
        """The requests for all that was decided; then nothing is left. Those who are not there are told nothing."""
        messages: list[Message] = []
        entries = {key: _entry(context, key) for key in self._known(context)}
        for broker, told in self._lead.items():
            if broker in context.brokers:
                messages.append(_leader_and_isr(context, broker, told, entries))
        if self._lead or self._changed or self._deleted:
            self._tell.update(context.brokers)
        if self._tell:
            body = _update_metadata(context, entries, [key for key in self._changed if key in entries], self._deleted)
            for broker in sorted(self._tell & context.brokers.keys()):
                image = context.brokers[broker]
                own = Struct(**(vars(body) | {"broker_epoch": image.epoch}))
                messages.append(Message(image, ApiKey.UPDATE_METADATA, own))
        for broker, stopped in self._stop.items():
            if broker in context.brokers:
                messages.append(_stop_replica(context, broker, stopped))
        self.__init__()  # type: ignore[misc]
        return tuple(messages)

    def _known(self, context: Context) -> list[TopicPartition]:
        keys = dict(self._changed)
        for told in self._lead.values():
            keys.update(dict.fromkeys(told))
        return [key for key in keys if (part := context.partition(key)) is not None and part.state is not None]


def _entry(context: Context, key: TopicPartition) -> Struct:
    """What LeaderAndIsr and UpdateMetadata say of a partition alike."""
    partition = context[key]
    state = partition.state
    assert state is not None
    here = context.present(key, partition.replicas)
    return Struct(
        index=key.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=partition.version,
        replicas=list(partition.replicas),
        adding=list(partition.adding),
        removing=list(partition.removing),
        offline=[one for one in partition.replicas if one not in here],
        is_new=False,
    )


def _leader_and_isr(
    context: Context, broker: int, told: dict[TopicPartition, bool], entries: dict[TopicPartition, Struct]
) -> Message:
    rows: dict[str, list[Struct]] = {}
    leaders: dict[int, None] = {}
    for key, is_new in told.items():
        entry = entries.get(key)
        if entry is not None:
            rows.setdefault(key.topic, []).append(Struct(**(vars(entry) | {"is_new": True})) if is_new else entry)
            leaders[entry.leader] = None
    image = context.brokers[broker]
    body = Struct(
        controller_id=context.broker_id,
        controller_epoch=context.epoch,
        broker_epoch=image.epoch,
        topics=[Struct(name=name, partitions=partitions) for name, partitions in rows.items()],
        live_leaders=[_address(context.brokers[leader]) for leader in leaders if leader in context.brokers],
    )
    return Message(image, ApiKey.LEADER_AND_ISR, body)


def _update_metadata(
    context: Context,
    entries: dict[TopicPartition, Struct],
    changed: Iterable[TopicPartition],
    deleted: Iterable[TopicPartition],
) -> Struct:
    rows: dict[str, list[Struct]] = {}
    for key in changed:
        rows.setdefault(key.topic, []).append(entries[key])
    for key in deleted:
        rows.setdefault(key.topic, []).append(_gone(context, key))
    return Struct(
        controller_id=context.broker_id,
        controller_epoch=context.epoch,
        broker_epoch=-1,
        topics=[Struct(name=name, partitions=partitions) for name, partitions in rows.items()],
        brokers=[_broker(broker) for _, broker in sorted(context.brokers.items())],
    )


def _gone(context: Context, key: TopicPartition) -> Struct:
    partition = context.partition(key)
    return Struct(
        index=key.partition,
        controller_epoch=context.epoch,
        leader=DELETED,
        leader_epoch=0,
        isr=[],
        partition_epoch=0,
        replicas=[] if partition is None else list(partition.replicas),
        offline=[],
    )


def _stop_replica(context: Context, broker: int, stopped: dict[TopicPartition, tuple[int, bool]]) -> Message:
    rows: dict[str, list[Struct]] = {}
    for key, (leader_epoch, delete) in stopped.items():
        row = Struct(index=key.partition, leader_epoch=leader_epoch, delete=delete)
        rows.setdefault(key.topic, []).append(row)
    image = context.brokers[broker]
    body = Struct(
        controller_id=context.broker_id,
        controller_epoch=context.epoch,
        broker_epoch=image.epoch,
        topics=[Struct(name=name, partitions=partitions) for name, partitions in rows.items()],
    )
    return Message(image, ApiKey.STOP_REPLICA, body)


def address(broker: BrokerImage) -> Endpoint:
    """Where other brokers reach this one."""
    return broker.endpoint(LISTENER) or broker.endpoints[0]


def _address(broker: BrokerImage) -> Struct:
    endpoint = address(broker)
    return Struct(id=broker.broker_id, host=endpoint.host, port=endpoint.port)


def _broker(broker: BrokerImage) -> Struct:
    endpoints = [
        Struct(port=one.port, host=one.host, listener=one.listener, security_protocol=_SECURITY.get(one.security, 0))
        for one in broker.endpoints
    ]
    return Struct(id=broker.broker_id, endpoints=endpoints, rack=broker.rack)
