"""One real ZooKeeper server as a child process: the jars are those inside pyspark, so pip alone is enough.

Quiet (no logging jar on its class path), on loopback, admin server off. It dies with its parent, however the parent
dies. It is *ready* when it answers ``srvr`` with ``Mode:``: an open port is not enough, because a standalone server
that accepts a connection before its database is loaded never answers it.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from kafka2011.child import die_with_parent
from kafka2011.errors import Kafka2011Error
from zk_registry.java import find_java

HOST = "127.0.0.1"
READY_S = 60.0
_JARS = ("zookeeper-[0-9]*.jar", "zookeeper-jute-*.jar", "slf4j-api-*.jar", "metrics-core-*.jar", "snappy-java-*.jar")
_FLAGS = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dslf4j.internal.verbosity=ERROR",
    "-Dzookeeper.preAllocSize=1024",
)
# The kernel kills a child when the *thread* that started it ends, so one thread that lives as long as the process
# starts them all.
_SPAWNER = ThreadPoolExecutor(1, "zookeeper-spawner")


class EmbeddedZooKeeperError(Kafka2011Error):
    """The embedded ZooKeeper could not be started, or not be found."""


class PortTaken(EmbeddedZooKeeperError):
    """The server ended before it served, most likely because another process has one of its ports."""


def class_path() -> str:
    """The five jars a server needs, out of pyspark (found, not imported)."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise EmbeddedZooKeeperError(
            "the embedded ZooKeeper is the one inside pyspark, which is not installed; "
            "install it with: pip install 'kafka2011[embedded]', or use a ZooKeeper of your own"
        )
    directory = Path(package.origin).parent / "jars"
    jars = []
    for pattern in _JARS:
        found = sorted(directory.glob(pattern))
        if not found:
            raise EmbeddedZooKeeperError(f"{directory} has no {pattern}: this pyspark carries no ZooKeeper server")
        jars.append(str(found[-1]))
    return os.pathsep.join(jars)


def free_ports(n_ports: int) -> list[int]:
    """Ports nobody listens on now, outside the range the kernel hands out for outgoing connections."""
    free: list[int] = []
    for port in random.sample(range(15_000, 32_000), 1000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        free.append(port)
        if len(free) == n_ports:
            return free
    raise EmbeddedZooKeeperError(f"no {n_ports} free ports between 15000 and 32000 on {HOST}")


class ZooKeeperServer:
    """One server process with its own directory and ports. Thread: any, one at a time."""

    def __init__(self, number: int, directory: Path, port: int, configuration: str, *, durable: bool) -> None:
        self.number, self.directory, self.port = number, directory, port
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "myid").write_text(f"{number}\n")
        self._configuration = directory / "zoo.cfg"
        self._configuration.write_text(f"dataDir={directory}\nclientPort={port}\n{configuration}")
        self._flags = (*_FLAGS, f"-Dzookeeper.forceSync={'yes' if durable else 'no'}")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; it is not ready yet."""
        java = str(find_java())
        command = [java, *self._flags, "-cp", class_path(), "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
        command.append(str(self._configuration))
        with open(self.directory / "output.log", "ab") as output:
            # Its own process group: Ctrl-C in the terminal reaches us, and we stop it in order.
            self._process = _SPAWNER.submit(
                subprocess.Popen,
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            ).result()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Return when it serves; raise PortTaken if it ended instead."""
        deadline = time.monotonic() + timeout_s
        while not self.is_serving():
            if self.pid is None:
                raise PortTaken(
                    f"ZooKeeper server {self.number} ended before it served on {self.address}; another process may "
                    f"have the port. {self._last_output()}".rstrip()
                )
            if time.monotonic() > deadline:
                raise EmbeddedZooKeeperError(
                    f"ZooKeeper server {self.number} on {self.address} did not serve within {timeout_s:.0f} s. "
                    f"{self._last_output()}".rstrip()
                )
            time.sleep(0.03)

    def is_serving(self) -> bool:
        """Whether *this* server, and not another one that has its port, serves."""
        return self.mode() is not None and f"dataDir={self.directory}" in self.ask("conf")

    def mode(self) -> str | None:
        """``standalone``, ``leader`` or ``follower`` while it serves, else None."""
        for line in self.ask("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def ask(self, word: str, timeout_s: float = 0.5) -> str:
        """The answer to a four-letter word; empty if there is none in time."""
        answer = b""
        try:
            with socket.create_connection((HOST, self.port), timeout=timeout_s) as connection:
                connection.sendall(word.encode("ascii"))
                while part := connection.recv(65536):
                    answer += part
        except OSError:
            # Not up yet, paused or dead: all of them are "no answer".
            return ""
        return answer.decode("utf-8", "replace")

    def kill(self) -> None:
        """End it at once, as a power cut would; also when it is paused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask it to end; make sure that it did."""
        if self._process is None:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _last_output(self) -> str:
        try:
            text = (self.directory / "output.log").read_text(errors="replace").strip()
        except OSError:
            return ""
        return f"Its last words: {text[-500:]}" if text else ""
