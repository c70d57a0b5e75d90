"""The kill matrix: whatever dies, the table is as before or complete, and running again makes it complete (§4)."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hadoop_etl.job import Load
from hadoop_etl.planning import Options, Planner
from hadoop_etl.runners import InlineRunner, OnProgress
from hadoop_etl.state import status
from hadoop_etl.task import read_split
from hadoop_etl.work import Result
from kafka2011.failpoints import activate
from kafka2011.testing import BrokerProcess
from kafka2011.wire.message import Codec
from tests.integration.etl import driver
from tests.integration.etl.conftest import BROKER, Town, event

STEPS = (
    "etl.plan.written",
    "etl.task.done@1",
    "etl.task.done@2",
    "etl.verify",
    "etl.commit.before",
    "etl.commit.after",
    "etl.dead.before",
    "etl.dead.after",
    "etl.audit",
    "etl.report",
)
PUBLISHED = ("etl.commit.after", "etl.dead.before", "etl.dead.after", "etl.audit", "etl.report")
UNSETTLED = ("etl.commit.after", "etl.dead.before")
"""Published, and the quarantine has yet to follow."""


def test_driver_killed_at_every_step(town: Town, forks: Any) -> None:
    """SIGKILL at each step, three times: before the commit nothing is there, after it everything, never in between."""
    for step in (step for _ in range(3) for step in STEPS):
        before = town.loaded() if town.table.exists() else []
        town.send([event(i) for i in range(200)] + [b"no event"], partition=0)
        town.send([event(i) for i in range(300)], partition=1, codec=Codec.GZIP)
        victim = forks.Process(target=driver.run, args=(town.broker.address, town.warehouse.root, [town.topic], step))
        victim.start()
        victim.join(60)
        assert victim.exitcode == -signal.SIGKILL, step
        if step in PUBLISHED:
            town.check()
            found = status(town.warehouse)
            assert found.state == "committed"
            assert found.unsettled == ((town.topic,) if step in UNSETTLED else ()), step
            town.table.settle()  # as the next load would, but that one is to die at its own step
        else:
            assert (town.loaded() if town.table.exists() else []) == before
            assert status(town.warehouse).state == "nothing"
    town.load()
    town.check()
    dead = DeltaTable(town.table.quarantine.uri).to_pyarrow_dataset()
    assert dead.count_rows() == 3 * len(STEPS), "a reader that knows nothing of us finds every dead row once"


def test_killed_between_two_topics(town: Town, forks: Any, tmp_path: Path) -> None:
    """A load that died after one topic's commit is half done, says so, and the next one finishes it."""
    other = Town(town.broker, tmp_path, topic=f"{town.topic}b")
    town.send([event(i) for i in range(50)])
    other.send([event(i) for i in range(50)])
    topics = [town.topic, other.topic]
    victim = forks.Process(
        target=driver.run, args=(town.broker.address, town.warehouse.root, topics, "etl.commit.before@2")
    )
    victim.start()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    found = status(town.warehouse)
    assert (found.state, found.published, found.unpublished) == ("half done", (town.topic,), (other.topic,))
    town.load_run().run(topics)
    town.check()
    other.check()
    assert status(town.warehouse).state == "committed"


class Together(InlineRunner):
    """Both loads have read everything before either goes on."""

    def __init__(self, barrier: threading.Barrier) -> None:
        super().__init__(1)
        self._barrier = barrier

    def run(self, works: Any, on_progress: OnProgress) -> list[Result]:
        done = super().run(works, on_progress)
        self._barrier.wait(60)
        return done


def load_at_once(town: Town) -> None:
    """Two loads of the same rows, without the lock: one publishes, the other is refused, and no row is there twice."""
    barrier = threading.Barrier(2)
    outcomes = []

    def load() -> None:
        plan = Planner(town.warehouse, town.cluster(), Options()).plan([town.topic])
        outcomes.append(Load(town.warehouse, Together(barrier)).run(plan))

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    errors = [outcome.topics[0].error for outcome in outcomes]
    assert sorted(error is None for error in errors) == [False, True]
    assert any("another load" in error for error in errors if error)
    town.check()


@pytest.mark.parametrize("loaded_before", [False, True])
def test_two_loaders_at_once_publish_one_commit(town: Town, loaded_before: bool) -> None:
    """Without the lock, on the first load as on a later one: the slower loader is refused, no row is there twice."""
    town.send([event(i) for i in range(100)])
    if loaded_before:
        town.load()
        town.send([event(i) for i in range(100)])
    load_at_once(town)


def test_a_task_that_fails_is_run_again(town: Town) -> None:
    """A task may fail a few times; its half-written files are never published."""
    town.send([event(i) for i in range(500)])
    with activate("etl.task.done", "raise:EIO@1"):
        report = town.load()
    assert (report["state"], report["failed_tasks"]) == ("committed", 1)
    town.check()
    town.send([event(1)])
    with activate("etl.task.done", "raise:ENOSPC"):
        report = town.load()
    assert report["state"] == "failed"
    assert "No space left" in report["topics"][0]["error"]
    town.load()
    town.check()


def test_broker_killed_in_mid_read_and_returned(tmp_path: Path) -> None:
    """A split survives its broker's death: what was flushed is there again, and nothing is read twice (§3.1)."""
    with BrokerProcess(tmp_path / "data", options=BROKER) as broker:
        town = Town(broker, tmp_path)
        town.send([event(i) for i in range(2000)])
        plan = Planner(town.warehouse, town.cluster(), Options()).plan([town.topic])
        (part,) = plan.topics[0].ranges
        chunks = read_split(town.topic, part.part, part.address, part.splits[0], 10_000)
        found = [next(chunks)]
        broker.kill()
        rest = threading.Thread(target=lambda: found.extend(chunks))
        rest.start()
        broker.restart()
        rest.join(120)
        offsets = [int(offset) for entries, _ in found for rows in entries.rows for offset in rows.offset]
        assert offsets == [offset for _, offset, _ in town.sent]
        assert town.load()["state"] == "committed"
        town.check()
