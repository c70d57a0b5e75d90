"""Somebody deletes nodes of living processes in a real ZooKeeper: they are noticed and put right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers import Consumer
from consumers.algorithm1.consumer import Consumer as Algorithm1Consumer
from consumers.events import ClaimTakenOut, IdTakenOut, SessionLost
from kafka2011.events import Event
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.waiting import until
from zk_registry import paths
from zk_registry.operations import Delete, Get, Node, NoNode, Operation


@pytest.fixture
def world(zk_connect: str, tmp_path: Path) -> Iterator[Arena]:
    """One broker with two partitions and ten messages. Sessions outlive every pause of a busy machine."""
    arena = Arena(zk_connect, tmp_path, session_s=30.0)
    try:
        arena.broker(0)
        arena.send_everywhere()
        until(lambda: len(arena.registry.brokers.partitions(TOPIC)) == 2, "the topic is announced")
        yield arena
    finally:
        arena.close()


@pytest.fixture
def consumer(world: Arena) -> Iterator[Algorithm1Consumer]:
    with Consumer(world.connect, world.group, session_timeout_s=30.0, autocommit_interval_s=0.2) as made:
        made.create_message_streams(TOPIC)[0].timeout_s = 60.0
        until(lambda: len(made.owned) == 2, "it reads everything")
        yield made


def perform(world: Arena, operation: Operation) -> object:
    return world.registry.registry.perform(operation)


def node(world: Arena, path: str) -> Node | None:
    try:
        found = perform(world, Get(path))
        assert isinstance(found, Node)
        return found
    except NoNode:
        return None


def told(consumer: Algorithm1Consumer, kind: type[Event]) -> list[Event]:
    return [entry.event for entry in consumer.journal.since() if isinstance(entry.event, kind)]


@pytest.mark.parametrize("path", [paths.broker_id(0), paths.topic_on_broker(TOPIC, 0)])
def test_a_brokers_node_is_put_back(world: Arena, path: str) -> None:
    """A living broker's id or topic, deleted by hand, is back by the same session, and an event tells (§3.2)."""
    before = node(world, path)
    perform(world, Delete(path))

    back = until(lambda: node(world, path), "the node is back")
    assert before is not None and back is not None
    assert (back.value, back.ephemeral_owner) == (before.value, before.ephemeral_owner)
    events = json.loads(world.brokers[0].http("/events?once=1"))
    assert [event["path"] for event in events if event["event"] == "node_taken_out"] == [path]


def test_a_consumers_id_is_put_back_and_it_reads_on(world: Arena, consumer: Algorithm1Consumer) -> None:
    """A living consumer whose id is deleted by hand writes it again and keeps its session and partitions (§3.2)."""
    path = paths.consumer_id(world.group, consumer.consumer_id)
    before = node(world, path)
    perform(world, Delete(path))

    back = until(lambda: node(world, path), "the node is back")
    assert before is not None and back is not None
    assert (back.value, back.ephemeral_owner) == (before.value, before.ephemeral_owner)
    until(lambda: told(consumer, IdTakenOut), "the consumer tells")
    assert not told(consumer, SessionLost) and len(consumer.owned) == 2
    consumer.commit()


def test_a_claim_taken_out_is_made_again_and_nothing_is_lost(world: Arena, consumer: Algorithm1Consumer) -> None:
    """An owner node deleted by hand stops the partition until it is claimed again; every message comes once (§3.2)."""
    (stream,) = consumer._streams
    seen = [next(stream).payload.decode() for _ in range(5)]
    owned = consumer.owned[0]
    path = paths.owner(world.group, owned.topic, owned.partition)
    perform(world, Delete(path))

    until(lambda: told(consumer, ClaimTakenOut), "the consumer tells")
    until(lambda: node(world, path) is not None and len(consumer.owned) == 2, "it is claimed again")
    while not world.sent <= set(seen):
        seen.append(next(stream).payload.decode())
    assert len(seen) == len(world.sent), "in peace, none comes twice"


def test_two_consumers_do_not_read_what_was_taken_from_one(world: Arena) -> None:
    """With others in the group the partition is shared out anew, and the history has no illegal step (§3.2)."""
    for name in ("c1", "c2"):
        world.join(name)
    world.wait_shared(2, 2)
    world.produce_all_the_time()
    for partition in sorted(world.owners()):
        before = node(world, paths.owner(world.group, TOPIC, partition))
        assert before is not None
        perform(world, Delete(paths.owner(world.group, TOPIC, partition)))
        world.wait_shared(2, 2)
    until(lambda: world.polls("c1") > 20 and world.polls("c2") > 20, "both are reading")
    world.stop_producing()
    world.wait_delivered()

    report = world.check(at_rest=True)
    assert report.valid, report
