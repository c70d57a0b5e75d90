"""A real Apache Kafka without ZooKeeper, broker and controller in one process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafka2011.errors import Kafka2011Error
from since2011.client.admin import Admin
from tests.interop.since2011.real_broker import free_port
from tests.interop.since2011.real_kafka import jars
from tests.waiting import until

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n
"""


class KraftBroker:
    """``kafka.Kafka`` on a directory of the test's. A context manager.

    Clients are told to come to ``advertised_port``, where that is given: a proxy's.
    """

    def __init__(self, directory: Path, *, advertised_port: int | None = None, **settings: object) -> None:
        """``settings`` are server properties, with underscores for dots."""
        self.port, controller = free_port(), free_port()
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{advertised_port or self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": directory / "logs",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 2,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 2,
            "group.initial.rebalance.delay.ms": 0,
        }
        properties |= {name.replace("_", "."): value for name, value in settings.items()}
        self._properties = directory / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        (directory / "log4j.properties").write_text(_LOG4J)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> KraftBroker:
        command = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j.configuration=file:{self._directory}/log4j.properties", "-cp", f"{jars()}/*"]
        formatting = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)]
        subprocess.run([*command, *formatting], check=True, capture_output=True, timeout=120)
        with (self._directory / "out").open("wb") as out:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(self._properties)], stdout=out, stderr=out)
        until(self._is_up, "the real broker is up", timeout_s=120)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def _is_up(self) -> bool:
        assert self._process is not None
        output = (self._directory / "out").read_text()
        assert self._process.poll() is None, output
        return _answers(self.port)


def _answers(port: int) -> bool:
    try:
        with Admin(f"127.0.0.1:{port}", timeout_s=5.0) as admin:
            return admin.topics() is not None
    except (Kafka2011Error, OSError):
        return False
