"""Kafka Connect in distributed mode on our broker (issue 25, must show 3)."""

from __future__ import annotations

from pathlib import Path

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.interop.since2011.connect_worker import TOPICS, ConnectWorker
from tests.interop.since2011.real_kafka import jars_with
from tests.waiting import until


def test_connect_carries_a_file_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    """A file source and a file sink, their configs, offsets and states in three compacted topics of ours.

    The second worker reads there what the first was told and how far it came: every line arrives once.
    """
    jars_with("connect-runtime", "connect-file")
    source, sink = tmp_path / "in", tmp_path / "out"
    lines = [f"line {number}" for number in range(500)]
    source.write_text("".join(f"{line}\n" for line in lines[:300]))

    def arrived(count: int) -> bool:
        return sink.exists() and sink.read_text().splitlines() == lines[:count]

    with BrokerProcess(options={"modern.port": 0}) as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        worker = ConnectWorker(bootstrap, tmp_path / "connect")
        with worker:
            files = "org.apache.kafka.connect.file.FileStream"
            worker.connect("source", connector_class=f"{files}SourceConnector", file=source, topic="lines")
            worker.connect("sink", connector_class=f"{files}SinkConnector", file=sink, topics="lines")
            until(lambda: arrived(300), "the first lines are in the sink", timeout_s=170)
        with source.open("a") as more:
            more.write("".join(f"{line}\n" for line in lines[300:]))
        with worker:
            until(lambda: arrived(500), "the other lines are in the sink, each once", timeout_s=170)
        with Admin(bootstrap) as admin:
            rows = admin.topics([*TOPICS])
        assert {row.name: row.settings.get("cleanup.policy") for row in rows} == dict.fromkeys(TOPICS, "compact")
        assert {row.name: len(row.partitions) for row in rows} == dict(zip(TOPICS, (1, 3, 2), strict=True))
