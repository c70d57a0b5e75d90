"""The two brokers, each a process of its own with the same flush settings on a free loopback port."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import psutil

from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess

VARIABLE = "KAFKA07_LIB"
"""Names the directory with the jars of Kafka 0.7.0 and what they need (kafka-perf, scala, log4j, zookeeper …)."""
LOGGING = Path(__file__).with_name("log4j.properties")
FLUSH = {
    "log.flush.interval": 10_000,
    "log.default.flush.interval.ms": 50,
    "log.default.flush.scheduler.interval.ms": 10,
}
PARTITIONS = {"p10": 10, "p100": 100, "p1000": 1000}
"""Topics of several partitions; all others have one."""


class Side:
    """One of the two brokers."""

    name: str
    port: int
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds it has used so far."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        """Its resident memory now."""
        return psutil.Process(self.pid).memory_info().rss / 1e6

    def stop(self) -> None:
        """End it."""


class Ours(Side):
    """kafka2011."""

    name = "ours"

    def __init__(self, directory: Path, zookeeper: str, options: dict[str, object] | None = None) -> None:
        counts = ",".join(f"{topic}:{n}" for topic, n in PARTITIONS.items())
        settings: dict[str, object] = {
            "brokerid": 1,
            "num.partitions": 1,
            "topic.partition.count.map": counts,
        } | ({"zk.connect": zookeeper} if zookeeper else {})
        self._broker = BrokerProcess(directory / "ours", settings | (FLUSH if options is None else options))
        self._broker.start()
        assert isinstance(self._broker.process, subprocess.Popen)
        self.port, self.pid = self._broker.port, self._broker.process.pid

    def stop(self) -> None:
        self._broker.stop()


class Real(Side):
    """The real Kafka 0.7.0, by ``java -server`` with 0.7's own memory settings."""

    name = "0.7"

    def __init__(self, directory: Path, zookeeper: str, options: dict[str, object] | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        home = directory / "real"
        home.mkdir()
        counts = ",".join(f"{topic}:{n}" for topic, n in PARTITIONS.items())
        settings: dict[str, object] = {
            "brokerid": 0,
            "hostname": "127.0.0.1",
            "port": self.port,
            "log.dir": home / "data",
            "num.threads": os.cpu_count() or 2,
            "num.partitions": 1,
            "topic.partition.count.map": counts,
            "enable.zookeeper": "true" if zookeeper else "false",
            "zk.connect": zookeeper,
            "socket.send.buffer": 1 << 20,
            "socket.receive.buffer": 1 << 20,
            "max.socket.request.bytes": 100 << 20,
            "log.file.size": 512 << 20,
            "log.retention.hours": 168,
            "log.cleanup.interval.mins": 60,
        } | (FLUSH if options is None else options)
        (home / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._process = subprocess.Popen(
            [*java(), "-Xmx512M", "kafka.Kafka", str(home / "server.properties")],
            stdout=(home / "out").open("wb"),
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        self.pid = self._process.pid
        deadline = time.monotonic() + 30
        while True:
            try:
                with BrokerConnection("127.0.0.1", self.port, connect_timeout_s=0.5) as connection:
                    connection.offsets("none", 0)
                return
            except Kafka2011Error:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    said = (home / "out").read_text()[-2000:]
                    raise RuntimeError(f"the real broker does not start: {said}") from None
                time.sleep(0.1)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def java() -> list[str]:
    """The beginning of a Java command with the jars of 0.7, and its own level of logging.

    Without a configuration log4j logs at DEBUG, and 0.7 then formats several strings for each message.
    """
    return ["java", "-server", "-cp", f"{os.environ[VARIABLE]}/*", f"-Dlog4j.configuration={LOGGING.as_uri()}"]
