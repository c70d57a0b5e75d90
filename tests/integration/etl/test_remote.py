"""The warehouse on another machine: tables, plans, reports, quarantine and lock are there, nothing is here (§4).

S3 always; HDFS where its servers are named by KAFKA2011_HADOOP_JAR (docs/etl.md).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from hadoop_etl import lock
from hadoop_etl.cli import etl
from hadoop_etl.errors import LoadLocked, WarehouseError
from hadoop_etl.lock import lock_holder, locked
from hadoop_etl.reading import register
from hadoop_etl.state import status
from hadoop_etl.storage import names, read_text
from hadoop_etl.warehouse import Warehouse
from kafka2011.clock import ManualClock
from kafka2011.testing import BrokerProcess
from tests.integration.etl import driver, stores
from tests.integration.etl.conftest import QUICK_JVM, Town, event, filled
from tests.integration.etl.test_crashes import PUBLISHED, STEPS, load_at_once
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One of these starts Spark; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(600)


@dataclass
class Abroad(Town):
    """A town whose warehouse is in a remote store."""

    place: str = ""
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(f"{self.place}/{self.topic}/warehouse")


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A remote store; this process is given the way to it."""
    if request.param == "hdfs" and stores.HADOOP_JAR not in os.environ:
        pytest.skip(f"HDFS: no jar is named in {stores.HADOOP_JAR}")
    with getattr(stores, request.param)(tmp_path_factory.mktemp(request.param)) as (place, environ):
        before = {name: os.environ.get(name) for name in environ}
        os.environ.update(environ)
        yield place, environ
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@pytest.fixture
def abroad(store: tuple[str, dict[str, str]], broker: BrokerProcess, tmp_path: Path) -> Abroad:
    place, environ = store
    return Abroad(broker, tmp_path, place=place, environ=environ)


def command(*words: str) -> str:
    """What a sub-command of ``kafka2011 etl`` prints, in this process."""
    done = CliRunner().invoke(etl, words)
    assert done.exit_code == 0, done.output
    return done.stdout


class Elsewhere:
    """A machine with nothing on it: ``kafka2011 etl`` runs there, and what it leaves on its disk can be seen."""

    def __init__(self, disk: Path) -> None:
        self._disk = disk
        for name in ("home", "tmp", "work"):
            (disk / name).mkdir(parents=True)

    def run(self, *words: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        own = {"HOME": str(self._disk / "home"), "TMPDIR": str(self._disk / "tmp")}
        done = subprocess.run(
            [sys.executable, "-m", "kafka2011", "etl", *words],
            cwd=self._disk / "work",
            env=os.environ | own | environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def left(self) -> list[Path]:
        return [path for path in self._disk.rglob("*") if path.is_file()]


def test_a_night_abroad(abroad: Abroad, tmp_path: Path) -> None:
    """Planned on one machine, killed on a second, loaded by Spark on a third: no disk but the store's is needed."""
    filled(abroad, 100).send([b"not an event"])
    one, two, three = (Elsewhere(tmp_path / name) for name in ("one", "two", "three"))
    place = ["-w", abroad.warehouse.root]
    topic = ["-b", abroad.broker.address, "-t", f"{abroad.topic}:json"]
    plan = f"{abroad.place}/{abroad.topic}/tonight.json"
    one.run("plan", *place, *topic, "-o", plan)
    run = ["run", *place, *topic, "--plan", plan]
    killed = two.run(*run, "--master", "inline", check=False, KAFKA2011_FAILPOINTS="etl.commit.before=kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert status(abroad.warehouse).state == "nothing"
    spark = ["--master", "local[2]", "--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}"]
    report = json.loads(three.run(*run, *spark, "--json").stdout)
    assert (report["state"], report["rows"], report["dead"]) == ("committed", 200, 1)
    abroad.check()
    found = json.loads(command("status", *place, "--json"))
    assert (found["state"], found["load"], found["running"]) == ("committed", report["load"], None)
    assert json.loads(command("report", *place))["load"] == report["load"]
    assert "<svg" in command("report", *place, "--html")
    (dead,) = json.loads(command("quarantine", *place, abroad.topic, "--json"))
    assert bytes.fromhex(dead["bytes"]) == b"not an event"
    assert names(f"{abroad.warehouse.root}/_etl/loads") == [f"{report['load']}.json"]
    for machine in (one, two, three):
        assert machine.left() == []


def test_driver_killed_at_every_step(abroad: Abroad, forks: Any) -> None:
    """SIGKILL at each step: before the commit nothing is there, after it everything; the lock is free at once."""
    for step in STEPS:
        before = abroad.loaded() if abroad.table.exists() else []
        filled(abroad, 60).send([b"no event"])
        arguments = (abroad.broker.address, abroad.warehouse.root, [abroad.topic], step, abroad.environ)
        victim = forks.Process(target=driver.run, args=arguments)
        victim.start()
        victim.join(120)
        assert victim.exitcode == -signal.SIGKILL, step
        if step in PUBLISHED:
            abroad.check()
            abroad.table.settle()  # as the next load would, but that one is to die at its own step
        else:
            assert (abroad.loaded() if abroad.table.exists() else []) == before, step
        assert status(abroad.warehouse).state == ("committed" if step in PUBLISHED else "nothing"), step
    assert abroad.load()["rows"] == 0
    abroad.check()


@pytest.mark.parametrize("loaded_before", [False, True])
def test_two_loaders_at_once_publish_one_commit(abroad: Abroad, loaded_before: bool) -> None:
    """Without the lock: the log entry is created only if it is absent, the slower loader is refused, no row twice."""
    filled(abroad, 100)
    if loaded_before:
        abroad.load()
        filled(abroad, 100)
    load_at_once(abroad)


def test_two_nights_do_not_overlap(abroad: Abroad) -> None:
    """The second is told who holds the lock, and where; of many who come at once one gets it; then it is free."""
    warehouse = abroad.warehouse
    with locked(warehouse, "etl run"):
        assert f"process {os.getpid()} on " in str(status(warehouse).running)
        with pytest.raises(LoadLocked, match=r"process \d+ on .* \(etl run\)"):
            abroad.load()
    assert lock_holder(warehouse) is None
    barrier, got, refused = threading.Barrier(6), [], []

    def come(number: int) -> None:
        barrier.wait(60)
        try:
            with locked(warehouse, f"number {number}"):
                got.append(number)
                until(lambda: len(refused) == 5, "the others were refused")
        except LoadLocked as error:
            refused.append(error)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert (len(got), len(refused)) == (1, 5)
    assert [name for name in names(f"{warehouse.root}/_etl/lease") if name.endswith(".json")] == []
    filled(abroad, 10)
    assert abroad.load()["state"] == "committed"


def test_the_lease_of_a_machine_that_died_runs_out(abroad: Abroad, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process elsewhere nobody here can know whether it lives: its lease is waited out, and only then taken."""
    clock = ManualClock()
    lease = lock._Lease(abroad.warehouse, clock)
    with monkeypatch.context() as there:
        there.setattr(lock, "_machine", lambda: "another machine")
        there.setattr(lock.socket, "gethostname", lambda: "etl-2")
        lost = lease.take("etl run")
    clock.advance(lock.LEASE_MS / 1000 - 1)
    with pytest.raises(LoadLocked, match=r"on etl-2 \(etl run\).*runs out by itself at \d\d:\d\d:\d\d UTC"):
        lease.take("another")
    lease.renew(lost)
    clock.advance(lock.LEASE_MS / 1000 - 1)
    assert lease.holder() == lost, "it lives: its lease was renewed"
    clock.advance(2)
    assert lease.holder() is None
    assert lease.take("another").what == "another"


def test_a_lease_is_renewed_while_it_is_held(abroad: Abroad, monkeypatch: pytest.MonkeyPatch) -> None:
    """A night longer than the lease keeps the lock."""
    monkeypatch.setattr(lock, "LEASE_MS", 200)
    place = f"{abroad.warehouse.root}/_etl/lease"
    with locked(abroad.warehouse, "etl run"):
        (name,) = (name for name in names(place) if name.endswith(".json"))
        first = read_text(f"{place}/{name}")
        until(lambda: read_text(f"{place}/{name}") != first, "the lease is renewed")
    assert lock_holder(abroad.warehouse) is None


def test_rewind_compact_and_vacuum_abroad(abroad: Abroad) -> None:
    """What looks after tables works there too: rows and offsets go back together, orphans go, rows stay exact."""
    place = ["-w", abroad.warehouse.root]
    for batch in range(2):
        abroad.send([event(batch * 50 + i) for i in range(50)])
        abroad.load()
    versions = json.loads(command("read", *place, abroad.topic, "--versions", "--json"))
    command("rewind", *place, abroad.topic, "--to-version", str(versions[-1]["version"]))
    assert len(abroad.loaded()) == 50
    assert abroad.load()["rows"] == 50
    command("compact", *place)
    removed = json.loads(command("vacuum", *place, "--keep-hours", "0", "--json"))
    assert removed
    abroad.check()


def test_spark_sql_reads_it_or_says_which_jar_is_missing(abroad: Abroad, spark: SparkSession) -> None:
    """Spark itself knows HDFS; for S3 it needs a jar, and is not silent about it."""
    filled(abroad, 20)
    abroad.load()
    if abroad.place.startswith("hdfs:"):
        register(spark, abroad.warehouse)
        assert spark.sql(f"SELECT * FROM {abroad.topic}").count() == 40
    else:
        with pytest.raises(WarehouseError, match="no file system for s3a"):
            register(spark, abroad.warehouse)


def test_a_store_that_is_away_ends_the_load_with_one_sentence(abroad: Abroad, tmp_path: Path) -> None:
    """Nobody listens there: the command ends with 1 and says where it knocked, without a stack."""
    filled(abroad, 5)
    here = Elsewhere(tmp_path / "here")
    scheme, _, rest = abroad.place.partition("://")
    place = f"{scheme}://127.0.0.1:1/x" if scheme == "hdfs" else f"{scheme}://{rest}/x"
    run = ["run", "-w", place, "-b", abroad.broker.address, "-t", abroad.topic, "--master", "inline"]
    done = here.run(*run, check=False, AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_MAX_ATTEMPTS="1")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.fullmatch(rf"kafka2011: {scheme}://\S+ cannot be reached: .*refused.*\n", done.stderr), done.stderr
