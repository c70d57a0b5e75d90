"""Which ports a cluster takes: its usual ones whenever they are free, and it says loudly when they are not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from classroom.cluster.cluster import PORTS_FROM_BASE, Cluster
from classroom.cluster.processes import Process


class Said(list[str]):
    """A ``say`` that remembers."""

    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def base() -> int:
    """The first of a row of ports nobody has just now."""
    for first in range(30_000, 60_000, PORTS_FROM_BASE):
        try:
            with socket.create_server(("127.0.0.1", first + 10)), socket.create_server(("127.0.0.1", first + 11)):
                return first
        except OSError:
            continue
    pytest.skip("no free ports on this machine")


def remembered(cluster: Cluster, name: str, port: int) -> None:
    """A process of the cluster that does not run now and had ``port``."""
    cluster.processes.all[name] = Process(name, "broker", [], ready={"port": port})
    cluster.processes._all[name] = Process(name, "broker", [], ready={"port": port})
    cluster.processes.save()


def test_a_taken_port_is_said_loudly(tmp_path: Path, base: int) -> None:
    """With another program on the usual port, the cluster says who is reached there and takes another (issue 22 A1)."""
    said = Said()
    cluster = Cluster(tmp_path, port_base=base, say=said)
    with socket.create_server(("127.0.0.1", base + 10)):
        assert cluster.port("broker-0", "port", "broker", 0) == 0
        assert cluster.port("broker-1", "port", "broker", 1) == base + 11

    (words,) = said
    assert words.startswith("ATTENTION")
    assert f"127.0.0.1:{base + 10}" in words


def test_the_usual_port_is_taken_again_when_it_is_free(tmp_path: Path, base: int) -> None:
    """A cluster that once had to go elsewhere comes back to its usual port, without a word (issue 22 A1)."""
    said = Said()
    cluster = Cluster(tmp_path, port_base=base, say=said)
    remembered(cluster, "broker-0", base + 99)

    assert cluster.port("broker-0", "port", "broker", 0) == base + 10
    assert said == []


def test_the_port_of_before_comes_second(tmp_path: Path, base: int) -> None:
    """While the usual port is taken, a process keeps the one it had before: those who know it find it again."""
    cluster = Cluster(tmp_path, port_base=base)
    remembered(cluster, "broker-0", base + 11)
    with socket.create_server(("127.0.0.1", base + 10)):
        assert cluster.port("broker-0", "port", "broker", 0) == base + 11


def test_two_clusters_take_ports_of_their_own(tmp_path: Path) -> None:
    """--port-base gives every process of two clusters different ports, and is remembered (issue 22 C1)."""
    clusters = [Cluster(tmp_path / name, port_base=first) for name, first in (("a", 21_000), ("b", 22_000))]
    for cluster in clusters:
        cluster.processes.save()
    clusters = [Cluster(tmp_path / "a"), Cluster(tmp_path / "b")]
    taken = [
        {
            cluster._usual(kind, number)
            for kind in ("zookeeper", "observatory", "broker", "modern", "admin")
            for number in range(20 if kind not in ("zookeeper", "observatory") else 1)
        }
        for cluster in clusters
    ]

    assert not taken[0] & taken[1]
    assert [len(ports) for ports in taken] == [62, 62]


def test_any_ports_is_remembered(tmp_path: Path) -> None:
    """A cluster begun with --any-ports never claims the usual ones later."""
    Cluster(tmp_path, any_ports=True).processes.save()

    assert Cluster(tmp_path).port("broker-0", "port", "broker", 0) == 0
