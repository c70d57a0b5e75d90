"""A controller over a ZooKeeper in memory: its steps are done at once, its requests are kept, brokers answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

from kafka2011.types import TopicPartition
from since2011.controller import office
from since2011.controller.context import Context
from since2011.controller.outbox import Message
from since2011.controller.steps import Send, Steps
from since2011.wire.codec import ApiKey, Struct, decode_header, decode_request, encode_request
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.modern import paths, texts
from zk_registry.modern.registration import ModernRegistration
from zk_registry.modern.registry import ModernRegistry
from zk_registry.modern.texts import Assignment, BrokerEntry, Endpoint, PartitionState
from zk_registry.operations import Create, Get, Node, NoNode, RegistryError, Set

T = TypeVar("T")


class FixedRules:
    """What a test lets be."""

    def __init__(self) -> None:
        self.unclean_topics: Collection[str] = ()
        self.deletes = True

    def unclean(self, topic: str) -> bool:
        return topic in self.unclean_topics


class Cluster:
    """Brokers as sessions with a node; one of them holds the office."""

    def __init__(self, *brokers: int) -> None:
        self.world = FakeZooKeeper()
        self.admin = self.world.session()
        ModernRegistry(self.admin).prepare()
        self.sessions: dict[int, FakeSession] = {}
        self.rules = FixedRules()
        self.sent: list[Message] = []
        self.noted: set[str] = set()
        for broker in brokers:
            self.start(broker)
        self.elect(brokers[0])

    # -- brokers

    def start(self, broker: int) -> None:
        session = self.sessions[broker] = self.world.session()
        entry = BrokerEntry((Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker),))
        ModernRegistration(session, broker, entry).reconcile()

    def kill(self, broker: int) -> None:
        self.sessions.pop(broker).close()

    def elect(self, broker: int) -> None:
        self.session = self.sessions[broker]
        context = self.run(office.run_for_office(broker, self.session.session_id, 0, self.rules))
        assert context is not None
        self.context: Context = context
        self.run(office.take_office(self.context))

    # -- the driver

    def run(self, steps: Steps[T]) -> T:
        """Do the steps, as the broker's controller thread does."""
        answer: Any = None
        error: RegistryError | None = None
        while True:
            try:
                step = steps.throw(error) if error is not None else steps.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            answer, error = None, None
            if isinstance(step, Send):
                self.sent += [_over_the_wire(message) for message in step.messages]
                continue
            try:
                answer = self.session.perform(step, lambda path: self.noted.add(path))
            except RegistryError as refused:
                error = refused

    def settle(self) -> None:
        """Let the controller see everything that has changed."""
        while self.world.deliver() or self.noted:
            noted, self.noted = self.noted, set()
            self.run(office.changed(self.context, noted))

    def answer_all(self, *but: int) -> None:
        """Every broker does what it was told to stop, and says so."""
        told, self.sent = self.sent, []
        for message in told:
            if message.key is ApiKey.STOP_REPLICA and message.broker.broker_id not in but:
                rows = [
                    Struct(topic=topic.name, index=row.index, error=0)
                    for topic in message.body.topics
                    for row in topic.partitions
                ]
                self.run(office.answered(self.context, message, Struct(error=0, partitions=rows)))

    # -- topics

    def create(self, name: str, *replicas: tuple[int, ...]) -> None:
        ModernRegistry(self.admin).create_topic(name, Assignment(dict(enumerate(replicas))), {})
        self.settle()

    def put(self, path: str, value: bytes | None = None) -> None:
        self.put_quietly(path, value)
        self.settle()

    def put_quietly(self, path: str, value: bytes | None = None) -> None:
        self.admin.perform(Create(path, value))

    def state(self, name: str, index: int = 0) -> PartitionState:
        return texts.parse_state(self.admin.perform(Get(paths.state(name, index))).value)

    def in_sync(self, name: str, isr: tuple[int, ...], index: int = 0) -> None:
        """The leader has changed the in-sync set."""
        node: Node = self.admin.perform(Get(paths.state(name, index)))
        before = texts.parse_state(node.value)
        after = PartitionState(before.leader, before.leader_epoch, isr, before.controller_epoch)
        self.admin.perform(Set(paths.state(name, index), after.encode(), node.version))
        self.settle()

    def assignment(self, name: str) -> Assignment:
        return texts.parse_assignment(self.admin.perform(Get(paths.topic(name))).value)

    def is_there(self, path: str) -> bool:
        try:
            self.admin.perform(Get(path))
        except NoNode:
            return False
        return True

    # -- what was sent

    def told(self, key: ApiKey, broker: int | None = None) -> list[Struct]:
        """The partitions named in requests of a kind, in order."""
        found = [m for m in self.sent if m.key is key and broker in (None, m.broker.broker_id)]
        return [row for message in found for topic in message.body.topics for row in topic.partitions]

    def order(self, broker: int) -> list[ApiKey]:
        return [message.key for message in self.sent if message.broker.broker_id == broker]


def key(name: str, index: int = 0) -> TopicPartition:
    return TopicPartition(name, index)


def _over_the_wire(message: Message) -> Message:
    """The request as its reader sees it: what cannot be encoded is found here."""
    version = {ApiKey.LEADER_AND_ISR: 4, ApiKey.UPDATE_METADATA: 6, ApiKey.STOP_REPLICA: 3}[message.key]
    frame = b"".join(encode_request(message.key, version, 1, "1", message.body))[4:]
    return replace(message, body=decode_request(frame, decode_header(frame)))
