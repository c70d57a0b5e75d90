"""The nightly load against Spark writing the same rows: ``make bench-etl`` (``ARGS="--full"`` for 5 M rows).

Everything is measured in one run, in interleaved rounds, and given as ratios: the ceiling is Spark writing the same
rows, already in its memory, to Parquet with the same compression. Absolute rates are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.crossing import crossing
from benchmarks.nights import nights
from hadoop_etl.cluster import Cluster
from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.entries import read_entries
from hadoop_etl.job import Load
from hadoop_etl.planning import Options, Planner
from hadoop_etl.runners import InlineRunner, SparkRunner
from hadoop_etl.spark import start_session
from hadoop_etl.warehouse import Warehouse
from kafka2011.avro import FileSchemaRegistry
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from tests.waiting import until

SIZE = 200
FIRST_MS = 1_307_836_800_000
DAYS = 3


def json_event(number: int, rows: int) -> bytes:
    """An event of about 200 bytes, spread over three days."""
    time_ms = FIRST_MS + number * DAYS * 86_400_000 // rows
    event = {"timestamp": time_ms, "user": number % 9973, "page": f"/item/{number % 5000}", "score": number / 7}
    text = json.dumps({**event, "ok": True})
    return (text[:-1] + ', "pad": "' + "x" * (SIZE - len(text) - 11) + '"}').encode()


def fill(broker: BrokerProcess, rows: int, topics: tuple[str, ...] = ("raw", "json")) -> None:
    """The same number of raw and of JSON messages, over two partitions."""
    with BrokerConnection(broker.host, broker.port) as connection:
        for topic in topics:
            sent = [0, 0]
            for start in range(0, rows, 2000):
                numbers = range(start, min(start + 2000, rows))
                if topic == "raw":
                    data = encode_set([os.urandom(20) * (SIZE // 20) for _ in numbers])
                else:
                    data = encode_set([json_event(n, rows) for n in numbers])
                partition = start // 2000 % 2
                connection.produce(topic, partition, data)
                sent[partition] += len(data)
            for partition in (0, 1):
                until(lambda p=partition, t=topic, s=sent: connection.offsets(t, p) == [s[p]], "all is flushed", 600)


def timed(work: Callable[[], object]) -> float:
    """Seconds of wall clock."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


class Bench:
    """One broker, one Spark session, one directory. Thread: one."""

    def __init__(self, broker: BrokerProcess, root: Path, rows: int) -> None:
        self.broker, self.root, self.rows = broker, root, rows
        self.spark = start_session("local[2]", settings={"spark.driver.memory": "3g"})
        self.spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
        from hadoop_etl.source import Kafka2011DataSource

        self.spark.dataSource.register(Kafka2011DataSource)
        self._count = 0

    def source(self, topic: str) -> Any:
        reader = self.spark.read.format("kafka2011").option("brokers", self.broker.address)
        return reader.option("topic", topic).option("splitBytes", str(16 << 20)).load()

    def place(self) -> Path:
        self._count += 1
        return self.root / f"out{self._count}"

    def load(self, topic: str, form: str) -> None:
        warehouse = Warehouse(str(self.place()))
        cluster = Cluster.from_brokers(self.broker.address)
        options = Options(formats={topic: form}, split_size=16 << 20)
        plan = Planner(warehouse, cluster, options).plan([topic])
        outcome = Load(warehouse, SparkRunner(self.spark.sparkContext)).run(plan)
        assert outcome.ok
        assert outcome.topics[0].rows == self.rows
        shutil.rmtree(warehouse.root)

    def write(self, rows: Any, *keys: str) -> None:
        place = self.place()
        writer = rows.write
        (writer.partitionBy(*keys) if keys else writer).parquet(str(place))
        shutil.rmtree(place)

    def rounds(self, count: int) -> dict[str, list[float]]:
        """Interleaved, so that each ratio is of neighbours in time."""
        raw = self.source("raw").select("partition", "offset", "next_offset", "payload").cache()
        assert raw.count() == self.rows
        schema = "timestamp long, user long, page string, score double, ok boolean, pad string"

        def obvious() -> None:
            parsed = self.source("json").selectExpr(f"from_json(CAST(payload AS STRING), '{schema}') AS e", "offset")
            dated = parsed.selectExpr("e.*", "offset", "to_date(timestamp_millis(e.timestamp)) AS dt")
            self.write(dated, "dt")

        lanes: dict[str, Callable[[], None]] = {
            "ceiling": lambda: self.write(raw),
            "raw load": lambda: self.load("raw", "raw"),
            "data source": lambda: self.write(self.source("raw")),
            "json load": lambda: self.load("json", "json"),
            "from_json": obvious,
        }
        found: dict[str, list[float]] = {name: [] for name in lanes}
        for number in range(count + 1):
            for name, lane in lanes.items():
                seconds = timed(lane)
                # The first round warms both sides up and is not counted.
                if number:
                    found[name].append(seconds)
                    print(f"round {number}: {name} {seconds:.2f} s", file=sys.stderr)
        return found


def decoding(rows: int) -> dict[str, float]:
    """Rows per second of one core, CRC checked, and the same at ten times the rows."""
    data = encode_set([os.urandom(SIZE) for _ in range(20_000)])

    def read(times: int) -> float:
        began = time.process_time()
        for _ in range(times):
            read_entries(data, 0, at_end=True)
        return 20_000 * times / (time.process_time() - began)

    read(2)
    few = max(rows // 200_000, 5)
    return {"decode, rows/s": read(few), "decode at 10 x the rows, rows/s": read(10 * few)}


def avro_against_fastavro() -> float:
    """Typed decoding of Avro against fastavro row by row, in CPU time."""
    with tempfile.TemporaryDirectory() as place:
        registry = FileSchemaRegistry(place)
        names = ("timestamp", "a", "b", "c")
        fields: list[dict[str, Any]] = [{"name": name, "type": "long"} for name in names]
        fields += [{"name": name, "type": "string"} for name in ("d", "e", "f", "g", "h")]
        number = registry.register("t", {"type": "record", "name": "T", "fields": fields})
        record = {**dict.fromkeys(names, 123456), **dict.fromkeys("defgh", "some text")}
        payloads = [registry.encode(number, record)] * 20_000
        decoder = make_decoder(Format("avro", {number: registry.schema(number)}))
        column = pa.array(payloads, pa.binary())
        ours, theirs = [], []
        for _ in range(3):
            began = time.process_time()
            decoder.decode(column)
            ours.append(time.process_time() - began)
            began = time.process_time()
            pa.Table.from_pylist([registry.decode(payload) for payload in payloads])
            theirs.append(time.process_time() - began)
    return min(theirs) / min(ours)


def driver_memory(broker: BrokerProcess, topic: str, max_bytes: int | None) -> int:
    """The highest resident size, in MB, of a process that drives a load of so many bytes."""
    code = (
        "import sys\nfrom benchmarks.etl import drive\n"
        "drive(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) or None)"
    )
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-c", code, broker.address, place, topic, str(max_bytes or 0)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def drive(address: str, place: str, topic: str, max_bytes: int | None) -> None:
    """Load in this process and print its highest resident size in MB."""
    warehouse, cluster = Warehouse(place), Cluster.from_brokers(address)
    options = Options(formats={topic: "raw"}, max_bytes=max_bytes, split_size=16 << 20)
    plan = Planner(warehouse, cluster, options).plan([topic])
    assert Load(warehouse, InlineRunner(2)).run(plan).ok
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def memory(sizes: tuple[int, ...] = (1_000_000, 50_000_000)) -> None:
    """The highest resident size of a process that loads so many rows; needs 25 GB of disk."""
    data = encode_set([os.urandom(20) * (SIZE // 20) for _ in range(2000)])
    with BrokerProcess(options={"log.flush.interval": 50_000, "log.file.size": 256 << 20}) as broker:
        for rows in sizes:
            topic = f"rows-{rows}"
            with BrokerConnection(broker.host, broker.port) as connection:
                for _ in range(rows // 2000):
                    connection.produce(topic, 0, data)
                end = rows // 2000 * len(data)
                until(lambda t=topic, e=end: connection.offsets(t, 0) == [e], "all is flushed", 600)
            began = time.monotonic()
            resident = driver_memory(broker, topic, None)
            seconds = time.monotonic() - began
            print(f"{rows:>12,} rows {resident:>8,} MB resident at most {seconds:>8.0f} s", flush=True)


def size(rows: int) -> None:
    """Bytes of a JSON table, and of the same rows as Spark writes them, by day and with the same compression."""
    options = {"num.partitions": 2, "log.flush.interval": 5000, "log.default.flush.interval.ms": 500}
    with tempfile.TemporaryDirectory(prefix="kafka2011-bench-") as place, BrokerProcess(options=options) as broker:
        fill(broker, rows, ("json",))
        warehouse = Warehouse(f"{place}/warehouse")
        chosen = Options(formats={"json": "json"})
        plan = Planner(warehouse, Cluster.from_brokers(broker.address), chosen).plan(["json"])
        outcome = Load(warehouse, InlineRunner(2)).run(plan)
        assert outcome.topics[0].rows == rows, outcome.topics[0].error
        files = warehouse.table("json").files()
        bench = Bench(broker, Path(place), rows)
        same = bench.spark.read.option("basePath", f"{place}/warehouse/json").parquet(
            *(f"{place}/warehouse/json/{file.path}" for file in files)
        )
        ours = sum(file.size for file in files)
        bare = same.select("timestamp", "user", "page", "score", "ok", "pad", "koffset", "dt")
        for name, lane in (("the same columns", same), ("the fields and the offset alone", bare)):
            target = bench.place()
            lane.write.partitionBy("dt").parquet(str(target))
            theirs = sum(file.stat().st_size for file in target.rglob("*.parquet"))
            count = len(list(target.rglob("*.parquet")))
            print(f"{rows:,} rows: table {ours:,} bytes in {len(files)} files; Spark's Parquet, {name}: ", end="")
            print(f"{theirs:,} in {count}; {ours / theirs:.3f} x", flush=True)


def main() -> None:
    """Run everything and print one table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="5 M rows")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory", action="store_true", help="only the memory of a load of 1 M and of 50 M rows")
    parser.add_argument("--size", action="store_true", help="only the table's size against Spark's own Parquet")
    parser.add_argument("--crossing", type=int, nargs="+", metavar="N", help="only N rows, inline and with Spark")
    parser.add_argument("--nights", type=int, metavar="N", help="only N loads into one table: their cost, their files")
    chosen = parser.parse_args()
    if chosen.memory:
        memory()
        return
    if chosen.size:
        size(chosen.rows)
        return
    if chosen.crossing:
        with tempfile.TemporaryDirectory(prefix="kafka2011-bench-") as place:
            crossing(chosen.crossing, chosen.rounds, lambda broker, rows: fill(broker, rows, ("json",)), Path(place))
        return
    if chosen.nights:
        nights(chosen.nights)
        return
    rows = 5_000_000 if chosen.full else chosen.rows
    options = {"num.partitions": 2, "log.flush.interval": 5000, "log.default.flush.interval.ms": 500}
    with tempfile.TemporaryDirectory(prefix="kafka2011-bench-") as place, BrokerProcess(options=options) as broker:
        fill(broker, rows)
        found: dict[str, Any] = {"rows": rows, **decoding(rows), "avro / fastavro, CPU": avro_against_fastavro()}
        small, large = (driver_memory(broker, "raw", limit) for limit in (rows * SIZE // 10, None))
        found["load process at a tenth of the rows, MB"], found["load process at all rows, MB"] = small, large
        seconds = Bench(broker, Path(place), rows).rounds(chosen.rounds)
    for name, one, other in (
        ("raw load / ceiling", "ceiling", "raw load"),
        ("data source to Spark's writer / ceiling", "ceiling", "data source"),
        ("JSON load by day / from_json + partitionBy", "from_json", "json load"),
    ):
        ratios = [a / b for a, b in zip(seconds[one], seconds[other], strict=True)]
        found[name] = statistics.median(ratios)
        found[f"{name}, range"] = [round(min(ratios), 2), round(max(ratios), 2)]
    found["raw load, rows/s"] = rows / statistics.median(seconds["raw load"])
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:48} {value:>14,.2f}" if isinstance(value, float) else f"{name:48} {value!s:>14}")


if __name__ == "__main__":
    main()
