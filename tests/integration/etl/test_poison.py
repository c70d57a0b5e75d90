"""One message costs only itself, one topic only itself, and every night that ends badly says so (issues 20 A, 21)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hadoop_etl.lock import locked
from hadoop_etl.planning import Options
from hadoop_etl.reading import quarantine
from hadoop_etl.state import read_report
from hadoop_etl.worker import WorkerRunner
from kafka2011.failpoints import VARIABLE
from kafka2011.testing import BrokerProcess
from kafka2011.wire.message import Codec
from tests.integration.etl.conftest import Town, event
from tests.waiting import until

DEEP = b'{"n":' * 1200 + b"1" + b"}" * 1200
BRACKETS = b'{"n":' + b"[" * 60_000 + b"]" * 60_000 + b"}"
MARK = "the-guilty-one"


def etl_run(town: Town, *more: object) -> list[str]:
    command = [sys.executable, "-m", "kafka2011", "etl", "run", "-w", town.warehouse.root, "-b", town.broker.address]
    return [*command, *map(str, more)]


def run(town: Town, *more: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``kafka2011 etl run`` as people start it."""
    return subprocess.run(
        etl_run(town, *more), env=os.environ | (env or {}), capture_output=True, text=True, timeout=120, check=False
    )


def last_report(town: Town) -> dict[str, Any]:
    found = read_report(town.warehouse)
    assert found is not None
    return found


@pytest.fixture
def worker() -> Iterator[WorkerRunner]:
    runner = WorkerRunner(1)
    yield runner
    runner.close()


def test_poison_of_every_kind_and_the_night_goes_on(town: Town, tmp_path: Path) -> None:
    """Nesting that crashed the process, names that collide, half letters: dead rows; other topics load (20 A1)."""
    other = Town(town.broker, tmp_path, topic=f"{town.topic}-healthy")
    brackets = Town(town.broker, tmp_path, topic=f"{town.topic}-brackets")
    names = Town(town.broker, tmp_path, topic=f"{town.topic}-names")
    town.send([event(0), DEEP, BRACKETS, event(1), b'{"N": 1}', b'{"n": "\\ud800"}', b'{"\\ud800": 1}', event(2)])
    brackets.send([b"[" * 1200, b"[" * 1200])
    names.send([b'{"a": 1, "A": 2}', b'{"Id": 1, "id": 2}'])
    other.send([event(i) for i in range(100)])
    towns = (town, brackets, names, other)
    done = run(town, *(word for t in towns for word in ("-t", t.topic)), "--max-dead", "100%")
    assert done.returncode == 0, done.stderr
    for one in towns:
        one.check()
    report = {topic["topic"]: topic for topic in last_report(town)["topics"]}
    assert (report[town.topic]["rows"], report[town.topic]["dead"]) == (5, 3)
    assert report[other.topic]["rows"] == 100
    assert "nested too deep" in report[town.topic]["reasons"]
    # A table that has a column ``n`` meets ``N`` in later nights as well.
    town.send([b'{"N": 5}', event(3)])
    assert run(town, "-t", town.topic).returncode == 0
    town.check()


def test_a_topic_that_cannot_be_planned_or_made_is_only_itself(town: Town, tmp_path: Path) -> None:
    """Whatever fails for one topic, the others are published; exit code 5 and the report say which (21-3)."""
    bad = Town(town.broker, tmp_path, topic=f"{town.topic}-bad")
    blocked = Town(town.broker, tmp_path, topic=f"{town.topic}-blocked")
    for one in (town, bad, blocked):
        one.send([event(i) for i in range(10)])
    Path(town.warehouse.root).mkdir()
    Path(town.warehouse.root, blocked.topic).write_text("a file where a table should be")
    done = run(town, "-t", town.topic, "-t", f"{bad.topic}:avro", "-t", blocked.topic)
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    town.check()
    report = {topic["topic"]: topic["error"] for topic in last_report(town)["topics"]}
    assert report[town.topic] is None
    assert "no schema is registered" in report[bad.topic]
    assert report[blocked.topic]
    assert last_report(town)["state"] == "half done"


def test_a_message_that_kills_the_worker_is_found_and_named(town: Town, worker: WorkerRunner) -> None:
    """The split is read in halves until the guilty ones are alone: in the open and in a wrapper (20 A1)."""
    town.send([event(i) for i in range(6)] + [event(6, s=MARK)] + [event(i) for i in range(7, 10)])
    town.send([event(0), event(1), event(2, s=MARK), event(3)], partition=1, codec=Codec.GZIP)
    os.environ[VARIABLE] = f"etl.task.batch=kill:{MARK}"
    try:
        report = town.load(worker, Options(formats={town.topic: "json"}))
    finally:
        del os.environ[VARIABLE]
    assert (report["state"], report["rows"], report["dead"]) == ("committed", 12, 2), report
    town.check()
    dead = quarantine(town.table).to_pylist()
    assert sorted((row["kpart"], row["kidx"]) for row in dead) == [(0, 0), (1, 2)]
    assert all(MARK.encode() in row["value"] and "worker process died" in row["kerror"] for row in dead)


def test_requeue_survives_a_message_that_kills_its_decoder(town: Town) -> None:
    """It stays in quarantine and says why, those beside it move over, and the command ends well (20 A1, 21-6)."""
    town.send([event(0), b"no event", f"no event, but {MARK}".encode(), b"none either"])
    assert run(town, "-t", town.topic, "--max-dead", "100%").returncode == 0
    killed = {VARIABLE: f"etl.task.batch=kill:{MARK}"}
    assert quarantine(town.table).num_rows == 3
    again = [sys.executable, "-m", "kafka2011", "etl", "requeue", town.topic, "-w", town.warehouse.root, "--json"]
    again += ["--format", "raw"]
    done = subprocess.run(again, env=os.environ | killed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (said,) = json.loads(done.stdout)
    assert (said["rows"], said["dead"]) == (2, 1)
    (left,) = quarantine(town.table).to_pylist()
    assert MARK.encode() in left["value"]
    assert "died of this message" in left["kerror"]
    town.check()


def test_a_worker_that_always_dies_condemns_no_message(town: Town, worker: WorkerRunner) -> None:
    """If everything kills it, it is the machine: nothing is quarantined, the topic fails and says so."""
    town.send([event(i) for i in range(4)])
    os.environ[VARIABLE] = "etl.task.batch=kill"
    try:
        report = town.load(worker)
    finally:
        del os.environ[VARIABLE]
    assert report["state"] == "failed"
    assert "worker process died" in report["topics"][0]["error"]
    town.load()
    town.check()


def metrics_of(path: Path) -> dict[str, float]:
    """The file as Prometheus reads it."""
    families = text_string_to_metric_families(path.read_text())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_every_bad_end_is_told(town: Town, tmp_path: Path) -> None:
    """No broker, a held lock, wrong usage: metrics and the person's command speak each time (21-5, 21-13)."""
    metrics, told = tmp_path / "etl.prom", tmp_path / "told"
    speak = ("--metrics-file", metrics, "--notify", f"cp -t {told}")

    def heard(code: int, *words: object) -> dict[str, Any]:
        told.mkdir()
        metrics.unlink(missing_ok=True)
        done = run(town, *words, *speak)
        assert done.returncode == code, done.stderr
        assert metrics_of(metrics)["kafka2011_etl_last_exit_code"] == code
        assert metrics_of(metrics)["kafka2011_etl_last_load_ok"] == 0
        (report,) = told.iterdir()
        found: dict[str, Any] = json.loads(report.read_text())
        report.unlink()
        told.rmdir()
        return found

    town.send([event(1)])
    with BrokerProcess(tmp_path / "gone") as gone:
        address = gone.address
    down = heard(1, "-t", town.topic, "-b", address)
    assert down["topics"][0]["error"]
    with locked(town.warehouse, "another load"):
        assert heard(4, "-t", town.topic, "--master", "local[2]")["state"] == "locked"
    assert last_report(town)["load"] == down["load"], "the report of the last real load stays the last"
    assert heard(2, "-t", f"{town.topic}:xml")["error"]
    assert heard(1, "-t", town.topic, "--plan", _stale(town))["error"]
    town.send([b"nonsense"] * 3)
    assert "--max-dead" in heard(1, "-t", f"{town.topic}:json")["topics"][0]["error"]


def _stale(town: Town) -> Path:
    path = town.root / "stale.json"
    path.write_text("{}")
    return path


def test_a_load_ended_by_sigterm_is_told(town: Town, tmp_path: Path) -> None:
    """A scheduler's time limit: report, metrics and the person's command speak, and the lock is free (21-5)."""
    town.send([event(i) for i in range(10)])
    metrics, told = tmp_path / "etl.prom", tmp_path / "told"
    told.mkdir()
    words = ["-t", town.topic, "--master", "inline", "--metrics-file", str(metrics), "--notify", f"cp -t {told}"]
    with subprocess.Popen(
        etl_run(town, *words),
        env=os.environ | {VARIABLE: "etl.task.done=sleep:100"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as load:
        until(lambda: load.poll() is not None or list(Path(town.table.uri).rglob("*.parquet")), "a task has its file")
        load.terminate()
        assert load.wait(60) == 128 + signal.SIGTERM
    (report,) = told.iterdir()
    assert "SIGTERM" in json.loads(report.read_text())["error"]
    assert last_report(town)["exit_code"] == metrics_of(metrics)["kafka2011_etl_last_exit_code"] == 143
    assert town.load()["rows"] == 10
    town.check()
