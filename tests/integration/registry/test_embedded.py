"""The embedded ZooKeeper: real servers, ready when they say so, gone when told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper, EmbeddedZooKeeperError
from zk_registry.server import free_ports

PARENT = """
import sys, time
from zk_registry.embedded import EmbeddedZooKeeper
zookeeper = EmbeddedZooKeeper().start()
print(zookeeper.servers[0].pid, flush=True)
time.sleep(600)
"""


def test_a_temporary_server_serves_and_leaves_nothing_behind() -> None:
    """start() returns when the server serves on loopback; stop() removes a temporary directory (§3.2)."""
    zookeeper = EmbeddedZooKeeper().start()
    directory = zookeeper.servers[0].directory
    assert zookeeper.servers[0].mode() == "standalone" and zookeeper.leader() == 0
    zookeeper.stop()
    zookeeper.stop()
    assert not directory.parent.exists()


def test_a_chosen_directory_is_kept_and_locked(tmp_path: Path) -> None:
    """Data in a chosen directory outlives a restart, and a second ZooKeeper on it is refused (§3.2)."""
    with EmbeddedZooKeeper(data_dir=tmp_path) as zookeeper, pytest.raises(EmbeddedZooKeeperError, match="another"):
        assert zookeeper.leader() == 0
        EmbeddedZooKeeper(data_dir=tmp_path).start()
    assert (tmp_path / "1" / "version-2").is_dir()


def test_a_named_port_that_is_taken_is_said(tmp_path: Path) -> None:
    """A port the user named and another process has is an error that names it, not a search for another (§3.2)."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(EmbeddedZooKeeperError, match=f"127.0.0.1:{port}"):
            EmbeddedZooKeeper(port=port).start()


def test_another_server_on_the_chosen_port_is_not_taken_for_ours(
    zookeeper: EmbeddedZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free port that another ZooKeeper takes meanwhile costs a second try, never a stranger's tree (§3.2)."""
    choices = [[zookeeper.servers[0].port, *free_ports(2)], free_ports(3)]
    monkeypatch.setattr("zk_registry.embedded.free_ports", lambda n_ports: choices.pop(0))
    with EmbeddedZooKeeper() as second:
        assert second.servers[0].port != zookeeper.servers[0].port and choices == []


def test_the_server_dies_with_its_parent(tmp_path: Path) -> None:
    """kill -9 of the process that started it takes the server along (§3.2)."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=-1, text=True, env=environment) as parent:
        try:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            assert _is_alive(pid)
        finally:
            parent.send_signal(signal.SIGKILL)
    until(lambda: not _is_alive(pid), "the orphaned server is gone")


def _is_alive(pid: int) -> bool:
    try:
        # A killed orphan stays a zombie until the machine's first process collects it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
