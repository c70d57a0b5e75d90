"""The two brokers, each a process of its own with its defaults (no fsync of its own), on free loopback ports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import click

from benchmarks.beside07.brokers import Side
from kafka2011.child import die_with_parent
from kafka2011.errors import ConnectionFailed
from kafka2011.testing import BrokerProcess
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct

VARIABLE = "KAFKA41_JARS"
"""Names the directory with the jars of kafka_2.13 and kafka-tools 4.1 and what they depend on."""
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def jars() -> Path:
    """The directory with the jars; ends the run with a sentence where there are none."""
    named = os.environ.get(VARIABLE)
    if shutil.which("java") is None:
        raise click.ClickException("skipped: java is not installed, so there is no real Kafka to compare with")
    if named is None:
        raise click.ClickException(f"skipped: {VARIABLE} does not name a directory with the jars of Kafka 4.1")
    return Path(named)


class Ours(Side):
    """kafka2011, its modern port."""

    name = "ours"

    def __init__(self, directory: Path) -> None:
        self._broker = BrokerProcess(directory / "ours", {"brokerid": 1, "modern.port": 0})
        self._broker.start()
        assert isinstance(self._broker.process, subprocess.Popen) and self._broker.modern_port is not None
        self.port, self.pid = self._broker.modern_port, self._broker.process.pid

    def stop(self) -> None:
        self._broker.stop()


class Real(Side):
    """The real Kafka 4.1, broker and controller in one process (KRaft), with its own memory settings."""

    name = "4.1"

    def __init__(self, directory: Path) -> None:
        home = directory / "real"
        home.mkdir()
        self.port, controller = _free_port(), _free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": home / "data",
            "offsets.topic.replication.factor": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        file = home / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        formatting = [*java(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(file)]
        subprocess.run(formatting, check=True, capture_output=True, timeout=120)
        self._process = subprocess.Popen(
            [*java(), "-Xmx1G", "-Xms1G", "kafka.Kafka", str(file)],
            stdout=(home / "out").open("wb"),
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        self.pid = self._process.pid
        deadline = time.monotonic() + 90
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"the real broker does not start: {(home / 'out').read_text()[-2000:]}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            connection = ModernConnection("127.0.0.1", self.port, client_id="bench", timeout_s=5)
            return bool(connection.ask(ApiKey.METADATA, 9, Struct(topics=None)).brokers)
        except (ConnectionFailed, OSError):
            return False

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def java() -> list[str]:
    """The beginning of a Java command with the jars of 4.1."""
    return ["java", "-server", "-cp", f"{jars()}/*"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found
