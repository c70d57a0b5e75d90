"""Real ZooKeeper for tests: one server for the whole run, an empty tree for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.testing import fresh_chroot


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[EmbeddedZooKeeper]:
    """One real server for the test session. Do not kill or pause it: others use it. Take your own for that."""
    with EmbeddedZooKeeper() as server:
        yield server


@pytest.fixture
def zk_connect(zookeeper: EmbeddedZooKeeper) -> str:
    """A connect string whose chroot is new and empty."""
    return fresh_chroot(zookeeper.connect)


@pytest.fixture(scope="module")
def zk_ensemble() -> Iterator[EmbeddedZooKeeper]:
    """Three servers for one test module, which may kill, pause and restart them, and leaves them running."""
    with EmbeddedZooKeeper(servers=3) as ensemble:
        yield ensemble
