"""The load and the data source on real Spark: one session for all of them (§4)."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException

from hadoop_etl.planning import Options
from hadoop_etl.reading import register
from hadoop_etl.runners import SparkRunner
from hadoop_etl.streaming import run_available
from kafka2011.testing import BrokerProcess
from tests.integration.etl import spark_tasks
from tests.integration.etl.conftest import Town, event, filled
from tests.integration.etl.snippets import block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

# Workers cannot import the tests: send these functions by value.
cloudpickle.register_pickle_by_value(spark_tasks)

# Starting Spark is the slow part, and a busy machine may need minutes for it; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(600)

SPLITS = Options(split_size=4000)


def test_a_load_by_spark_and_its_views(town: Town, spark: SparkSession) -> None:
    """Tasks of a plain RDD write, one commit publishes; Spark SQL finds the table and agrees with DuckDB."""
    filled(town).send([b"not an event"])
    report = town.load(SparkRunner(spark.sparkContext), SPLITS)
    assert (report["state"], report["rows"], report["dead"]) == ("committed", 800, 1)
    town.check()
    assert register(spark, town.warehouse) == {town.topic: town.topic}
    (row,) = spark.sql(f"SELECT count(*) AS rows, sum(n) AS total FROM {town.topic} WHERE dt >= '2011-06-12'").collect()
    assert (row.rows, row.total) == (800, 2 * sum(range(400)))
    assert spark.sql(f"SELECT kerror FROM {town.topic}__dead").count() == 1


def test_the_snippets_for_spark_run_as_printed(town: Town, spark: SparkSession) -> None:
    """Views and data source, as docs/etl.md has them (issue 21 point 16)."""
    town.send([event(i) for i in range(10)])
    town.load()
    reading = block("views = register").replace("/tmp/warehouse", town.warehouse.root)
    exec(reading.replace("FROM clicks", f"FROM {town.topic}"), {})
    source = block("Kafka2011DataSource").replace('option("zookeeper", "127.0.0.1:2181")', "option(*BROKERS)")
    names: dict[str, Any] = {"BROKERS": ("brokers", town.broker.address)}
    exec(source.replace('"clicks"', f'"{town.topic}"'), names)
    assert names["df"].count() == 10


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


def stream(town: Town, spark: SparkSession, limit: int) -> DataStreamWriter:
    """A query that appends the topic to Parquet files, some bytes a trigger."""
    reader = spark.readStream.format("kafka2011").option("brokers", town.broker.address).option("topic", town.topic)
    rows = reader.option("maxBytesPerTrigger", str(limit)).load()
    return rows.writeStream.format("parquet").options(checkpointLocation=str(town.root / "state"), path=out(town))


def out(town: Town) -> str:
    return str(town.root / "out")


def test_streaming_resumes_across_restarts(town: Town, spark: SparkSession) -> None:
    """Available-now, limited to some bytes a trigger: each restart goes on where the last run ended, nothing twice."""
    filled(town)
    source(town, spark)
    for more in (0, 0, 50):
        if more:
            filled(town, more)
        run_available(stream(town, spark, 15_000))
        assert keys_of(spark.read.parquet(out(town))) == sorted(town.sent)


def test_streaming_outlives_its_python_process(town: Town, spark: SparkSession) -> None:
    """Spark's process for the source is killed between two triggers: started again, the query loses nothing (§3.1)."""
    filled(town)
    source(town, spark)
    killed: list[int] = []
    over = threading.Event()

    def kill_after_a_trigger() -> None:
        while not over.is_set() and not killed:
            committed = list((town.root / "state" / "commits").glob("[0-9]*"))
            for process in psutil.Process().children(recursive=True) if committed else ():
                with suppress(psutil.Error):
                    if "pyspark.sql.streaming.python_streaming_source_runner" in process.cmdline():
                        process.kill()
                        killed.append(process.pid)
            over.wait(0.005)

    killer = threading.Thread(target=kill_after_a_trigger)
    killer.start()
    try:
        starts = run_available(stream(town, spark, 3000))
    finally:
        over.set()
        killer.join()
    assert killed
    assert starts > 1
    assert keys_of(spark.read.parquet(out(town))) == sorted(town.sent)


def test_streaming_ends_with_what_the_source_says(town: Town, spark: SparkSession) -> None:
    """An error of the source itself ends the query at once, and names its reason."""
    filled(town, 5)
    source(town, spark)
    starts: list[str] = []

    class Counted:
        def trigger(self, **kind: bool) -> DataStreamWriter:
            starts.append("start")
            return writer.trigger(**kind)

    writer = stream(Town(BrokerProcess(), town.root, town.topic), spark, 1000)
    with pytest.raises(StreamingQueryException, match="ConfigError"):
        run_available(Counted())
    assert len(starts) == 1
