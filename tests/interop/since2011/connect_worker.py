"""A worker of Kafka Connect in distributed mode, told what to do as administrators do: by its REST port."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.interop.since2011.real_broker import LOG4J, free_port
from tests.interop.since2011.real_kafka import jars
from tests.waiting import until

TOPICS = ("connect-configs", "connect-offsets", "connect-status")
"""The three compacted topics in which workers keep what they know."""


class ConnectWorker:
    """``ConnectDistributed`` against one broker. A context manager; it can be started again."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._port = free_port()
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        configs, offsets, status = TOPICS
        properties: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect-cluster",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": configs,
            "offset.storage.topic": offsets,
            "offset.storage.partitions": 3,
            "status.storage.topic": status,
            "status.storage.partitions": 2,
            "config.storage.replication.factor": 1,
            "offset.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "offset.flush.interval.ms": 1000,
            "listeners": f"http://127.0.0.1:{self._port}",
            "plugin.discovery": "only_scan",
        }
        self._properties = directory / "worker.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        (directory / "log4j.properties").write_text(LOG4J)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ConnectWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars()}/*"]
        command += [f"-Dlog4j.configuration=file:{self._directory}/log4j.properties"]
        command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(self._properties)]
        with (self._directory / "out").open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        until(lambda: self.ask("/connectors") is not None, "the worker answers", timeout_s=170)

    def stop(self) -> None:
        """Stop it as an administrator would: it commits how far its tasks are."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(30)
            self._process = None

    def ask(self, path: str, body: object = None) -> object:
        """What the REST port answers; None while it does not."""
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "out").read_text()
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            with urlopen(Request(f"http://127.0.0.1:{self._port}{path}", data, headers), timeout=30) as answer:
                return json.load(answer)
        except (URLError, OSError):
            return None

    def connect(self, name: str, **settings: object) -> None:
        """Make a connector; ``settings`` have underscores for dots."""
        config = {key.replace("_", "."): str(value) for key, value in settings.items()}
        made = self.ask("/connectors", {"name": name, "config": config})
        assert made is not None, (self._directory / "out").read_text()
