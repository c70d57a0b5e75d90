"""Fixtures of the tests with foreign clients."""

from __future__ import annotations

from tests.zookeeper_fixtures import zk_connect, zk_ensemble, zookeeper

__all__ = ["zk_connect", "zk_ensemble", "zookeeper"]
