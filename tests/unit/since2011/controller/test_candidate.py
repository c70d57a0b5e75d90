"""The office through its life: won, held, lost, given up. Real threads on a ZooKeeper in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka2011.types import TopicPartition
from since2011.controller.candidate import Candidate
from since2011.controller.context import Context
from since2011.controller.leadership import elect
from since2011.controller.outbox import Message
from since2011.controller.steps import Steps
from since2011.topics.image import BrokerImage
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from tests.unit.since2011.controller.cluster import FixedRules
from tests.waiting import until
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.modern import paths
from zk_registry.modern.registration import ModernRegistration
from zk_registry.modern.registry import ModernRegistry
from zk_registry.modern.texts import Assignment, BrokerEntry, Endpoint
from zk_registry.operations import Delete, Exists


class World:
    """A ZooKeeper whose watches arrive at once, and brokers that run for the office."""

    def __init__(self) -> None:
        self.zookeeper = FakeZooKeeper(schedule=lambda _session, notify: notify())
        self.admin = self.zookeeper.session()
        ModernRegistry(self.admin).prepare()
        self.sent: dict[int, list[Message]] = {}
        self.living: dict[int, dict[int, BrokerImage]] = {}
        self.candidates: list[Candidate] = []

    def broker(self, broker_id: int) -> tuple[FakeSession, Candidate]:
        session = self.zookeeper.session()
        self.register(session, broker_id)
        sent = self.sent.setdefault(broker_id, [])

        def send(messages: tuple[Message, ...], living: dict[int, BrokerImage]) -> None:
            sent.extend(messages)
            self.living[broker_id] = living

        candidate = Candidate(session, broker_id, FixedRules(), send)
        self.candidates.append(candidate)
        candidate.start()
        return session, candidate

    def register(self, session: FakeSession, broker_id: int) -> None:
        entry = BrokerEntry((Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),))
        ModernRegistration(session, broker_id, entry).reconcile()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    for candidate in world.candidates:
        candidate.stop()


def epoch(candidate: Candidate) -> int:
    context = candidate.context
    return 0 if context is None else context.epoch


def test_another_takes_the_office_when_its_holder_dies(world: World) -> None:
    """Issue 26 point 3: the next controller has the next epoch, and everything the nodes tell."""
    first_session, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    _, second = world.broker(2)
    first_session.expire()
    until(lambda: second.in_office, "the second is in office")
    assert epoch(second) == 2
    context = second.context
    assert context is not None and context.brokers.keys() == {2}


def test_whoever_lost_its_session_is_out_of_office(world: World) -> None:
    """A controller whose session ended sends nothing more; registered again, it may run again."""
    session, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    session.expire()
    session.resume()
    until(lambda: not first.in_office, "it has left")
    until(lambda: world.living[1] == {}, "its connections are closed")
    world.register(session, 1)
    until(lambda: epoch(first) == 2, "it is elected again")


def test_a_cut_and_no_more_keeps_the_office(world: World) -> None:
    """The connection was away and is back, the session is the same: the same epoch, and nothing is missed."""
    session, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    session.suspend()
    ModernRegistry(world.admin).create_topic("t", Assignment({0: (1,)}), {})
    session.resume()
    until(lambda: world.admin.perform(Exists(paths.state("t", 0))) is not None, "the topic is led")
    assert epoch(first) == 1


def test_a_lost_answer_of_the_election_is_looked_up(world: World) -> None:
    """ConnectionLoss means perhaps done: whoever holds /controller by its session is in office, with that epoch."""
    session = world.zookeeper.session()
    world.register(session, 1)
    for _ in range(4):  # of the reads before it, and of the transaction itself
        session.lose_reply(applied=True)
    candidate = Candidate(session, 1, FixedRules(), lambda _messages, _living: None)
    world.candidates.append(candidate)
    candidate.start()
    until(lambda: candidate.in_office, "it is in office")
    assert epoch(candidate) == 1


def test_a_controller_that_is_removed_runs_again(world: World) -> None:
    """/controller deleted by hand makes a new election, as real tools use it."""
    _, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    world.admin.perform(Delete(paths.CONTROLLER))
    until(lambda: epoch(first) == 2, "it is elected again")


def test_requests_are_the_controllers(world: World) -> None:
    """A broker that is not the controller refuses with NOT_CONTROLLER; the controller answers."""
    _, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    _, second = world.broker(2)
    ModernRegistry(world.admin).create_topic("t", Assignment({0: (1,)}), {})
    until(lambda: any(m.key is ApiKey.LEADER_AND_ISR for m in world.sent[1]), "the leader is told")
    answers: list[Any] = []

    def steps(context: Context) -> Steps[dict[TopicPartition, ErrorCode]]:
        return elect(context, [TopicPartition("t", 0)], unclean=False)

    second.ask(steps, answers.append)
    until(lambda: len(answers) == 1, "the second answers")
    assert isinstance(answers[0], Refused) and answers[0].error is ErrorCode.NOT_CONTROLLER
    first.ask(steps, answers.append)
    until(lambda: len(answers) == 2, "the first answers")
    assert answers[1] == {TopicPartition("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_a_defect_costs_the_office_not_the_broker(world: World) -> None:
    """What the controller does not know how to handle makes it give up the office, and run again."""
    _, first = world.broker(1)
    until(lambda: first.in_office, "the first is in office")
    answers: list[Any] = []

    def broken(_context: Context) -> Steps[None]:
        yield Exists(paths.CONTROLLER)
        raise KeyError("a defect")

    first.ask(broken, answers.append)
    until(lambda: epoch(first) == 2, "it is elected again")
    assert isinstance(answers[0], KeyError)
