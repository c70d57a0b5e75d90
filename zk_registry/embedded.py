"""A real ZooKeeper of one or three servers, for a laptop, a class, a test.

    with EmbeddedZooKeeper(servers=3) as zookeeper:
        ZooKeeperSession(zookeeper.connect)

Without ``data_dir`` the data lives in a temporary directory that is removed at ``stop()``. With one it is kept, and
every write is forced to disk. Free ports are chosen unless ``port`` names the first server's.

Paper: §3.2, "Kafka uses Zookeeper for ... a highly available consensus service".
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO

from zk_registry.server import HOST, EmbeddedZooKeeperError, PortTaken, ZooKeeperServer, free_ports

__all__ = ["EmbeddedZooKeeper", "EmbeddedZooKeeperError"]

_ATTEMPTS = 10


class EmbeddedZooKeeper:
    """One or three servers on loopback that end with this process. Thread: any, one at a time.

    Servers are numbered from 0. A session timeout may be anything from two ticks to a minute.
    """

    def __init__(
        self, servers: int = 1, data_dir: Path | None = None, port: int | None = None, tick_ms: int = 500
    ) -> None:
        if servers not in (1, 3):
            raise EmbeddedZooKeeperError(f"an embedded ZooKeeper has 1 or 3 servers, not {servers}")
        self._n_servers, self._data_dir, self._port, self._tick_ms = servers, data_dir, port, tick_ms
        self._directory: Path | None = None
        self._lock: IO[bytes] | None = None
        self.servers: list[ZooKeeperServer] = []

    @property
    def connect(self) -> str:
        """The connect string: every server's address."""
        if not self.servers:
            raise EmbeddedZooKeeperError("this embedded ZooKeeper is not started; call start() first")
        return ",".join(server.address for server in self.servers)

    def start(self) -> EmbeddedZooKeeper:
        """Start all servers and return when each of them serves."""
        self._take_directory()
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    self._start_servers()
                    return self
                except PortTaken:
                    # Between choosing a port and binding it another process may have taken it: choose others. A port
                    # the user named, or a failure that does not go away, is for the user.
                    self._kill_all()
                    if self._port is not None or attempt == _ATTEMPTS - 1:
                        raise
            return self
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all servers; a temporary data directory goes with them. May be called again."""
        for server in self.servers:
            # Nothing of a temporary server is worth the time of an orderly end.
            server.kill() if self._data_dir is None else server.stop()
        self.servers = []
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._data_dir is None and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = None

    def __enter__(self) -> EmbeddedZooKeeper:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- faults ---------------------------------------------------------------------------------------------------

    def kill(self, index: int = 0) -> None:
        """SIGKILL one server."""
        self.servers[index].kill()

    def pause(self, index: int = 0) -> None:
        """SIGSTOP one server: its connections stay open and mute."""
        self.servers[index].pause()

    def resume(self, index: int = 0) -> None:
        """SIGCONT one server."""
        self.servers[index].resume()

    def restart(self, index: int = 0, *, wait: bool = True) -> None:
        """Start a killed server again, or kill and start a running one, on its own port and data.

        ``wait`` until it serves, which one of three alone does not.
        """
        self.servers[index].kill()
        self.servers[index].start()
        if wait:
            self.servers[index].wait_ready()

    def leader(self) -> int | None:
        """Which server leads the others (0 for a single one); None during an election or without a majority."""
        for index, server in enumerate(self.servers):
            if server.mode() in ("leader", "standalone"):
                return index
        return None

    # -- inside ---------------------------------------------------------------------------------------------------

    def _take_directory(self) -> None:
        if self._directory is not None:
            raise EmbeddedZooKeeperError("this embedded ZooKeeper is started already")
        if self._data_dir is None:
            self._directory = Path(tempfile.mkdtemp(prefix="kafka2011-zookeeper-"))
            return
        directory = self._data_dir.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        # ZooKeeper itself does not notice two servers on one directory.
        lock = open(directory / ".lock", "wb")  # noqa: SIM115 - held until stop()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise EmbeddedZooKeeperError(
                f"another embedded ZooKeeper runs on {directory}; stop it or choose another directory"
            ) from None
        self._lock, self._directory = lock, directory

    def _start_servers(self) -> None:
        assert self._directory is not None
        ports = free_ports(3 * self._n_servers)
        if self._port is not None:
            ports[: self._n_servers] = range(self._port, self._port + self._n_servers)
        configuration = (
            f"tickTime={self._tick_ms}\ninitLimit=40\nsyncLimit=8\nmaxSessionTimeout=60000\n"
            f"clientPortAddress={HOST}\nmaxClientCnxns=0\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=srvr,conf,ruok,mntr,envi\n"
            "autopurge.purgeInterval=1\nautopurge.snapRetainCount=3\n"
        )
        if self._n_servers > 1:
            for number in range(1, self._n_servers + 1):
                peer, election = ports[self._n_servers + 2 * number - 2 :][:2]
                configuration += f"server.{number}={HOST}:{peer}:{election}\n"
        self.servers = [
            ZooKeeperServer(
                number,
                self._directory / str(number),
                ports[number - 1],
                configuration,
                durable=self._data_dir is not None,
            )
            for number in range(1, self._n_servers + 1)
        ]
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait_ready()

    def _kill_all(self) -> None:
        for server in self.servers:
            server.kill()
