"""The load and the data source on real Spark: one session for all of them (§4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException

from hadoop_etl.planning import Options
from hadoop_etl.reading import register
from hadoop_etl.runners import SparkRunner
from hadoop_etl.spark import package_zip
from kafka2011.child import die_with_parent
from kafka2011.wire.message import Codec
from tests.integration.etl import spark_tasks
from tests.integration.etl.conftest import QUICK_JVM, Town, event
from tests.waiting import until
from zk_registry.java import java_home_for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Workers cannot import the tests: send these functions by value.
cloudpickle.register_pickle_by_value(spark_tasks)

# Starting Spark is the slow part, and a busy machine may need minutes for it; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(600)

SPLITS = Options(split_size=4000)


def filled(town: Town, number: int = 400) -> Town:
    town.send([event(i) for i in range(number)], partition=0)
    town.send([event(i) for i in range(number)], partition=1, codec=Codec.GZIP)
    return town


def test_a_load_by_spark_and_its_views(town: Town, spark: SparkSession) -> None:
    """Tasks of a plain RDD write, one commit publishes; Spark SQL finds the table and agrees with DuckDB."""
    filled(town).send([b"not an event"])
    report = town.load(SparkRunner(spark.sparkContext), SPLITS)
    assert (report["state"], report["rows"], report["dead"]) == ("committed", 800, 1)
    town.check()
    assert set(register(spark, town.warehouse)) == {town.topic, f"{town.topic}_quarantine"}
    (row,) = spark.sql(f"SELECT count(*) AS rows, sum(n) AS total FROM {town.topic} WHERE dt >= '2011-06-12'").collect()
    assert (row.rows, row.total) == (800, 2 * sum(range(400)))
    assert spark.sql(f"SELECT kerror FROM {town.topic}_quarantine").count() == 1


@pytest.mark.parametrize("fault", ["killing_its_worker", "failing_twice", "twice_at_once"])
def test_tasks_that_die_fail_or_run_twice(town: Town, spark: SparkSession, tmp_path: Path, fault: str) -> None:
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


def test_a_task_that_always_fails_ends_the_load_with_one_sentence(town: Town, spark: SparkSession) -> None:
    """After the last attempt nothing is published, and the report says why without a stack."""
    filled(town, 5)
    report = town.load(SparkRunner(spark.sparkContext, spark_tasks.hopeless))
    assert report["state"] == "failed"
    assert "no hope" in report["error"]
    assert "Traceback" not in report["error"]
    assert town.loaded() == []
    town.load(SparkRunner(spark.sparkContext))
    town.check()


def source(town: Town, spark: SparkSession, **options: str) -> DataFrame:
    from hadoop_etl.source import Kafka2011DataSource

    spark.dataSource.register(Kafka2011DataSource)
    reader = spark.read.format("kafka2011").option("brokers", town.broker.address).option("topic", town.topic)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def keys_of(rows: DataFrame) -> list[tuple[int, int, int]]:
    return sorted(tuple(row) for row in rows.select("partition", "offset", "index").collect())


def test_the_source_reads_each_message_once(town: Town, spark: SparkSession) -> None:
    """spark.read.format("kafka2011"): cut into several partitions, typed fields, damage as rows (§3.1)."""
    filled(town).send([b"not an event"])
    found = source(town, spark, splitBytes="8000", format="json")
    assert found.rdd.getNumPartitions() > 2
    rows = found.collect()
    assert sorted((r["partition"], r["offset"], r["index"]) for r in rows) == sorted(town.sent)
    assert sorted(r["n"] for r in rows if r["error"] is None) == sorted([*range(400), *range(400)])
    (dead,) = [r for r in rows if r["error"] is not None]
    assert bytes(dead["payload"]) == b"not an event"


def test_the_source_between_offsets_and_with_chosen_columns(town: Town, spark: SparkSession) -> None:
    """Starting and ending offsets are exact; only the columns asked for are made; beyond the end is nothing."""
    filled(town)
    one, two = town.sent[100][1], town.sent[200][1]
    bounds = {"startingOffsets": {"0-0": one}, "endingOffsets": {"0-0": two, "0-1": 0}}
    texts = {name: json.dumps({town.topic: offsets}) for name, offsets in bounds.items()}
    assert keys_of(source(town, spark, **texts)) == town.sent[100:200]
    assert source(town, spark, startingOffsets="latest").count() == 0
    reader = spark.read.format("kafka2011").schema("offset long, payload binary")
    slim = reader.option("brokers", town.broker.address).option("topic", town.topic).load()
    assert slim.columns == ["offset", "payload"]
    assert slim.count() == 800


def test_streaming_resumes_across_restarts(town: Town, spark: SparkSession, tmp_path: Path) -> None:
    """Available-now, limited to some bytes a trigger: each restart goes on where the last run ended, nothing twice."""
    filled(town)
    source(town, spark)
    for more in (0, 0, 50):
        if more:
            filled(town, more)
        stream = spark.readStream.format("kafka2011").option("brokers", town.broker.address)
        stream = stream.option("topic", town.topic).option("maxBytesPerTrigger", "15000")
        writer = stream.load().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
        writer = writer.option("path", str(tmp_path / "out")).trigger(availableNow=True)
        for _ in range(5):
            query = writer.start()
            try:
                assert query.awaitTermination(300)
                break
            except StreamingQueryException:
                # Spark gives a Python process seconds to start; a busy machine may need more. To go on is the promise.
                continue
        assert keys_of(spark.read.parquet(str(tmp_path / "out"))) == sorted(town.sent)


# -- a cluster -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A standalone master and two workers on loopback, from the pip package; yields the master's URL."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "JAVA_HOME": str(java_home_for_spark()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = tmp_path / f"{name}.log"
        kind = "master.Master" if name == "master" else "worker.Worker"
        with open(log, "wb") as output:
            started.append(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
                    stdout=output,
                    stderr=output,
                    env=environment,
                    preexec_fn=die_with_parent,
                )
            )
        return log

    def words(log: Path, mark: str) -> list[str]:
        return [line for line in log.read_text(errors="replace").splitlines() if mark in line]

    try:
        log = start("master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        (line, *_) = until(lambda: words(log, "Starting Spark master at"), "the master listens")
        url = line.rpartition(" ")[2].strip()
        shape = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "700m")
        logs = [start(f"worker{i}", *shape, "--work-dir", str(tmp_path / "work"), url) for i in range(2)]
        for log in logs:
            until(lambda log=log: words(log, "Successfully registered"), "a worker registers")
        yield url
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_cluster_runs_the_same_load_from_the_package(town: Town, cluster: str, tmp_path: Path) -> None:
    """A master and two workers, speculation on; executors get this project as a zip (--py-files); rows are exact."""
    filled(town)
    package = package_zip()
    with zipfile.ZipFile(package) as archive:
        assert {"kafka2011/client.py", "hadoop_etl/task.py", "hadoop_etl/report.html"} <= set(archive.namelist())
    settings = {
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.executor.memory": "512m",
        # Copies of tasks at any moment must change nothing.
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.minTaskRuntime": "10ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    run = [sys.executable, "-m", "kafka2011", "etl", "run", "-w", town.warehouse.root, "-b", town.broker.address]
    run += ["-t", town.topic, "--master", cluster, "--py-files", package, "--split-bytes", "4000", *conf]
    loaded = subprocess.run(
        run,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    os.unlink(package)
    assert loaded.returncode == 0, loaded.stderr
    town.check()
    executors = sorted(path for path in (tmp_path / "work").glob("*/*") if path.is_dir())
    assert len(executors) == 2
    assert all(list(path.glob("kafka2011-*.zip")) for path in executors), "each executor was sent the package"
