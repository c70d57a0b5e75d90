"""The kill matrix on real Spark: whatever dies, rows are exact, by another engine (§4).

``make test`` goes through it once, ``make etl-matrix`` three times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from pyspark import cloudpickle

from hadoop_etl.job import Load, Outcome
from hadoop_etl.planning import Options, Planner
from hadoop_etl.runners import OnProgress, SparkRunner
from hadoop_etl.state import read_report, status
from hadoop_etl.work import Result, Work
from kafka2011.failpoints import VARIABLE
from kafka2011.testing import BrokerProcess
from tests.integration.etl import spark_tasks
from tests.integration.etl.conftest import BROKER, QUICK_JVM, Town, event, filled
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# Workers cannot import the tests: send these functions by value.
cloudpickle.register_pickle_by_value(spark_tasks)

# Starting Spark is the slow part, and a busy machine may need minutes for it; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(900)

ROUNDS = int(os.environ.get("KAFKA2011_ETL_ROUNDS", "1"))
SPLITS = Options(split_size=4000)

every_round = pytest.mark.parametrize("_round", range(ROUNDS))

UNPUBLISHED = (
    "etl.plan.written=kill",
    # These two stand in the tasks: the driver is killed from outside, after so many files were written.
    "etl.task.done=sleep:100",
    "etl.task.done=sleep:100@2",
    "etl.verify=kill",
    "etl.commit.before=kill",
)
PUBLISHED = ("etl.commit.after=kill", "etl.audit=kill", "etl.report=kill")
FILES = {"etl.task.done=sleep:100": 1, "etl.task.done=sleep:100@2": 3}


@contextmanager
def driver(town: Town, failpoint: str) -> Iterator[subprocess.Popen[bytes]]:
    """``kafka2011 etl run`` with its own JVM and workers; all of them are gone at the end."""
    run = [sys.executable, "-m", "kafka2011", "etl", "run", "-w", town.warehouse.root, "-b", town.broker.address]
    run += ["-t", town.topic, "--master", "local[2]", "--split-bytes", "4000"]
    run += ["--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}"]
    with open(town.root / "driver.log", "ab") as log:
        process = subprocess.Popen(
            run, env=os.environ | {VARIABLE: failpoint}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
        until(lambda: not family(process.pid), "JVM and workers end with their driver")
    finally:
        for pid in family(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def family(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def files_of(town: Town) -> int:
    return len(list(Path(town.table.uri).rglob("*.parquet")))


def wait_for_files(town: Town, number: int, writer: subprocess.Popen[bytes]) -> None:
    until(lambda: writer.poll() is not None or files_of(town) >= number, "tasks write files", timeout_s=300)


@every_round
def test_driver_killed_at_every_step(town: Town, _round: int) -> None:
    """SIGKILL for a real driver at each step: before the commit nothing is there, after it everything."""
    for step in (*UNPUBLISHED, *PUBLISHED):
        before, files = town.loaded() if town.table.exists() else [], files_of(town)
        filled(town, 60)
        with driver(town, step) as victim:
            if step in FILES:
                wait_for_files(town, files + FILES[step], victim)
                victim.kill()
            code = victim.wait(300)
        said = (town.root / "driver.log").read_text()
        assert code == -signal.SIGKILL, f"{step}: {said}"
        if step in PUBLISHED:
            town.check()
            assert status(town.warehouse).state == "committed", step
        else:
            assert (town.loaded() if town.table.exists() else []) == before, step
            assert status(town.warehouse).state == "nothing", step
    assert town.load()["rows"] == 0, "nothing is left to load"
    town.check()


def test_the_death_of_the_jvm_is_told_as_such(town: Town) -> None:
    """A real JVM killed under a load: the last words name it, not a broker, and there is a report (21-12)."""
    filled(town, 60)
    with driver(town, "etl.task.done=sleep:100") as victim:
        wait_for_files(town, 1, victim)
        (java,) = [pid for pid in family(victim.pid) if psutil.Process(pid).name() == "java"]
        os.kill(java, signal.SIGKILL)
        assert victim.wait(300) == 1
    last = (town.root / "driver.log").read_text().strip().splitlines()[-1]
    assert "its Java process ended" in last
    assert "nothing was published" in last
    report = read_report(town.warehouse)
    assert report is not None
    assert report["state"] == "failed"
    assert "its Java process ended" in report["error"]
    assert town.load()["state"] == "committed"
    town.check()


def test_sigterm_ends_a_load_by_spark_at_once(town: Town) -> None:
    """Not when its tasks are done; it is told of, and the next load finds everything as it was (21-5)."""
    filled(town, 60)
    with driver(town, "etl.task.done=sleep:1000") as victim:
        wait_for_files(town, 1, victim)
        victim.terminate()
        assert victim.wait(300) == 128 + signal.SIGTERM
    report = read_report(town.warehouse)
    assert report is not None
    assert "SIGTERM" in report["error"]
    assert town.load()["state"] == "committed"
    town.check()


@every_round
@pytest.mark.parametrize("fault", ["killing_its_worker", "failing_twice", "twice_at_once"])
def test_tasks_that_die_fail_or_run_twice(
    town: Town, spark: SparkSession, tmp_path: Path, fault: str, _round: int
) -> None:
    """A worker killed, a task failing twice, two copies at once: files of losers exist and no row is there twice."""
    filled(town)
    marks = tmp_path / "marks"
    marks.mkdir()
    task = getattr(spark_tasks, fault)(str(marks))
    report = town.load(SparkRunner(spark.sparkContext, task), SPLITS)
    assert report["state"] == "committed", report
    town.check()
    named = set(town.table.open().file_uris())
    written = {str(path) for path in Path(town.table.uri).rglob("*.parquet")}
    assert written > named, "an attempt that lost left its files behind, unseen"


@every_round
def test_broker_killed_while_tasks_read_and_returned(spark: SparkSession, tmp_path: Path, _round: int) -> None:
    """The broker dies under two running tasks and comes back: they read on, each message once (§3.1)."""
    marks = tmp_path / "marks"
    marks.mkdir()
    with BrokerProcess(tmp_path / "data", options=BROKER | {"num.partitions": 2}) as broker:
        town = filled(Town(broker, tmp_path))
        runner = SparkRunner(spark.sparkContext, spark_tasks.stopping_in_mid_read(str(marks)))
        reports = []
        load = threading.Thread(target=lambda: reports.append(town.load(runner)))
        load.start()
        until(lambda: len(list(marks.glob("reading-*"))) == 2, "both tasks are in mid-read")
        broker.kill()
        (marks / "go").touch()
        until(lambda: len(list(marks.glob("gone-*"))) == 2, "both tasks have noticed")
        broker.restart()
        load.join(300)
        assert [(report["state"], report["failed_tasks"]) for report in reports] == [("committed", 0)]
        town.check()


class _Together(SparkRunner):
    """Both loads have read everything before either goes on."""

    def __init__(self, context: SparkContext, barrier: threading.Barrier) -> None:
        super().__init__(context)
        self._barrier = barrier

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        done = super().run(works, on_progress)
        self._barrier.wait(120)
        return done


@every_round
@pytest.mark.parametrize("loaded_before", [False, True])
def test_two_loaders_at_once(town: Town, spark: SparkSession, loaded_before: bool, _round: int) -> None:
    """Two Spark loads of the same offsets, without the lock: one commit, the slower is refused, no row twice."""
    filled(town)
    if loaded_before:
        town.load()
        town.send([event(i) for i in range(100)])
    barrier = threading.Barrier(2)
    outcomes: list[Outcome] = []

    def load() -> None:
        plan = Planner(town.warehouse, town.cluster(), SPLITS).plan([town.topic])
        outcomes.append(Load(town.warehouse, _Together(spark.sparkContext, barrier)).run(plan))

    in_threads(load, load)
    errors = [outcome.topics[0].error for outcome in outcomes]
    assert sorted(error is None for error in errors) == [False, True]
    assert any("another load" in error for error in errors if error)
    town.check()


def in_threads(*functions: Callable[[], None]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
