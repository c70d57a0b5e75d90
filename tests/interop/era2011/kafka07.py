"""The real Kafka 0.7 as processes: its consumer, its broker, and the ZooKeeper 3.3.4 it came with.

``KAFKA07_LIB`` names a directory with its jars: kafka-0.7.*, scala-library-2.8.0, zkclient-0.1, zookeeper-3.3.4,
log4j-1.2.* and jopt-simple-3.2. Without it every test with them is skipped by name.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from kafka2011.child import die_with_parent
from zk_registry.java import find_java
from zk_registry.server import free_ports

_FLAGS = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


def library() -> Path:
    """Where the jars are; skip where they are not."""
    named = os.environ.get("KAFKA07_LIB")
    if not named:
        pytest.skip("the real Kafka 0.7: KAFKA07_LIB does not name a directory with its jars")
    return Path(named)


class Process07:
    """One Java process of that time; its words go to ``<name>.out`` and ``<name>.err``. Ends with its parent."""

    def __init__(self, directory: Path, name: str, main: str, *arguments: str) -> None:
        self.name = name
        self.out, self.err = directory / f"{name}.out", directory / f"{name}.err"
        log4j = directory / "log4j.properties"
        log4j.write_text(_LOG4J)
        command = [str(find_java()), *_FLAGS, f"-Dlog4j.configuration=file:{log4j}", "-cp", f"{library()}/*", main]
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.process = subprocess.Popen([*command, *arguments], stdout=out, stderr=err, preexec_fn=die_with_parent)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        """SIGTERM: its shutdown hook commits and closes the session."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()


def consumer(directory: Path, name: str, connect: str, group: str, topic: str) -> Process07:
    """A console consumer of 0.7 that commits every 300 ms and prints each message as a line."""
    options = {"zookeeper": connect, "group": group, "topic": topic, "autocommit.interval.ms": "300"}
    arguments = [word for key, value in options.items() for word in (f"--{key}", value)]
    return Process07(directory, name, "kafka.consumer.ConsoleConsumer", *arguments)


def broker(directory: Path, *more: str) -> tuple[Process07, int]:
    """A broker of 0.7 without ZooKeeper, and its port; ``more`` are lines of its settings."""
    (port,) = free_ports(1)
    settings = directory / "server.properties"
    settings.write_text(
        f"brokerid=0\nport={port}\nhostname=127.0.0.1\nlog.dir={directory / 'log07'}\nenable.zookeeper=false\n"
        "num.partitions=1\nlog.flush.interval=1\nlog.default.flush.interval.ms=100\n" + "".join(f"{m}\n" for m in more)
    )
    return Process07(directory, "broker07", "kafka.Kafka", str(settings)), port


def zookeeper(directory: Path) -> tuple[Process07, str]:
    """A ZooKeeper 3.3.4, and its address."""
    (port,) = free_ports(1)
    data = directory / "zookeeper334"
    data.mkdir()
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return Process07(directory, "zookeeper334", main, str(port), str(data), "500"), f"127.0.0.1:{port}"
