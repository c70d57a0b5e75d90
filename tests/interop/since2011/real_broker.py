"""A real Apache Kafka 3.9 broker in ZooKeeper mode, as a neighbour and as a judge."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from tests.interop.since2011.real_kafka import jars, run_tool
from tests.waiting import until

LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n
"""


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class RealBroker:
    """``kafka.Kafka`` on a ZooKeeper tree and a data directory of the test's. A context manager."""

    def __init__(self, connect: str, directory: Path, *, broker_id: int = 1, **settings: object) -> None:
        """``settings`` are server properties, with underscores for dots."""
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.logs = directory / "logs"
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        properties: dict[str, object] = {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": 6000,
            "log.dirs": self.logs,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 5,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 5,
            "group.initial.rebalance.delay.ms": 0,
            "log.initial.task.delay.ms": 600_000,
            "controlled.shutdown.enable": "false",
        }
        properties |= {name.replace("_", "."): value for name, value in settings.items()}
        self._properties = directory / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        (directory / "log4j.properties").write_text(LOG4J)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def output(self) -> str:
        """What it has said so far, warnings and errors only."""
        return (self._directory / "out").read_text()

    def start(self) -> None:
        """Start it, and wait until clients can connect."""
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j.configuration=file:{self._directory}/log4j.properties", "-cp", f"{jars()}/*"]
        with (self._directory / "out").open("wb") as out:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(self._properties)], stdout=out, stderr=out)
        until(self._answers, "the real broker answers", timeout_s=120)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.output
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Stop it as an administrator would."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(30)
            self._process = None

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's command-line classes against it."""
        return run_tool(name, "--bootstrap-server", self.bootstrap, *arguments, cwd=self._directory)
