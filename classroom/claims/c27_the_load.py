"""§4: a load that is restarted neither duplicates nor loses."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from classroom.claims.claim import CannotTell, Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, number_of, numbered, publish
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.child import die_with_parent
from kafka2011.failpoints import VARIABLE
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C27",
    section="4",
    title="The load starts again",
    sentence="without duplicating or losing messages in the event of a task restart. Both data and offsets are "
    "stored in HDFS only on the successful completion of the job.",
    experiment="The nightly load is killed: at the end of a task, just before its commit, just after it. Each "
    "time it is started again, with more messages. Are all messages in the table, and each once?",
    threshold="after every kill and restart each message is in the table exactly once",
    twist="a load that stores its data and then, separately, its offsets",
    dissent="A warehouse whose commits are not atomic. Files that a killed load left behind cost space until "
    "they are cleaned up.",
    later="Sinks that keep offsets with the data do the same today (Spark's checkpoints, Kafka Connect's "
    "exactly-once).",
    code=("hadoop_etl/warehouse.py", "hadoop_etl/job.py"),
    tests=("tests/integration/etl/test_crashes.py",),
    walk="docs/walks/9-the-night-load.md",
)

MOMENTS = ("etl.commit.before", "etl.commit.after", "etl.task.done")


def experiment(bench: Bench) -> Figures:
    """Kill, start again, count."""
    missing = [name for name in ("deltalake", "pyarrow", "polars") if find_spec(name) is None]
    if missing:
        raise CannotTell(f"the load needs {', '.join(missing)}: pip install 'kafka2011[etl]'")
    bench.plot("load", "messages")
    each, moments = bench.size(50, 500, 5_000), MOMENTS[: bench.size(1, 2, 3)]
    warehouse = bench.directory / "warehouse"
    published, rows = 0, []
    with bench.broker(LAZY_FLUSH) as broker:
        for moment in moments:
            end = publish(broker, "t", numbered(each, first=published))
            published += each
            wait_for(lambda end=end: _end(broker) == end, "all is flushed")
            for kill in (moment, ""):
                if bench.twisted:
                    _naive_load(broker, warehouse, die_between=bool(kill))
                else:
                    _load(broker, warehouse, kill)
            rows = _naive_rows(warehouse) if bench.twisted else _rows(warehouse)
            bench.point("published", moment, published)
            bench.point("rows", moment, len(rows))
            bench.point("different messages", moment, len(set(rows)))
    return {"kills": len(moments), "published": published, "rows": len(rows), "different": len(set(rows))}


def judge(figures: Figures) -> Judgement:
    """Each once."""
    published, rows, different = figures["published"], figures["rows"], figures["different"]
    figure = (
        f"{figures['kills']} killed loads, each started again: {published:,} messages published, {rows:,} rows, "
        f"{published - different} lost, {rows - different} twice"
    )
    return Judgement(Verdict.HOLDS if published == rows == different else Verdict.FAILS, figure)


def _load(broker: ClaimBroker, warehouse: Path, kill: str) -> None:
    """The real command; with ``kill`` it dies at that moment."""
    command = [sys.executable, "-m", "kafka2011", "etl", "run", "-b", broker.address, "-w", str(warehouse)]
    done = subprocess.run(
        [*command, "-t", "t:raw", "--master", "inline", "--time-field", ""],
        env=os.environ | ({VARIABLE: f"{kill}=kill"} if kill else {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=die_with_parent,
    )
    if not kill and done.returncode not in (0, 3):
        raise RuntimeError(f"the load ended with code {done.returncode}: {done.stderr[-1500:]}")


def _rows(warehouse: Path) -> list[int]:
    from hadoop_etl.warehouse import Warehouse

    values = Warehouse(str(warehouse)).table("t").dataset().to_table(columns=["value"])
    return [number_of(value) for value in values.column("value").to_pylist()]


def _naive_load(broker: ClaimBroker, warehouse: Path, *, die_between: bool) -> None:
    """Data first, then the offset, in two files; perhaps it dies between them."""
    warehouse.mkdir(exist_ok=True)
    offsets, data = warehouse / "offset", warehouse / "data"
    offset, end = int(offsets.read_text()) if offsets.exists() else 0, _end(broker)
    with broker.connect() as connection, data.open("a") as file:
        while offset < end:
            messages = decode_set(connection.fetch("t", 0, offset), offset)
            file.writelines(f"{number_of(message.payload)}\n" for message in messages)
            offset = messages[-1].next_offset
    if not die_between:
        offsets.write_text(str(offset))


def _naive_rows(warehouse: Path) -> list[int]:
    return [int(line) for line in (warehouse / "data").read_text().splitlines()]


def _end(broker: ClaimBroker) -> int:
    with broker.connect() as connection:
        return connection.offsets("t", 0)[0]
