"""The brokers a load reads from."""

from __future__ import annotations

import socket

import pytest

from hadoop_etl.cluster import Cluster
from kafka2011.client import BrokerConnection
from kafka2011.errors import CannotConnect
from kafka2011.types import BrokerPartition


def test_a_broker_that_is_down_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once per topic: five seconds each would be a long night (issue 21, point 3)."""
    attempts: list[str] = []

    def connect(self: BrokerConnection) -> socket.socket:
        attempts.append(str(self))
        raise CannotConnect(f"cannot connect to a broker at {self}")

    monkeypatch.setattr(BrokerConnection, "_connect", connect)
    cluster = Cluster.from_brokers("0:127.0.0.1:1,1:127.0.0.1:2")
    for topic in ("a", "b", "c"):
        for broker in (0, 1):
            with pytest.raises(CannotConnect, match=f":{broker + 1}$"):
                cluster.boundaries(topic, BrokerPartition(broker, 0))
        with pytest.raises(CannotConnect, match=r":1$"):
            cluster.partitions(topic)
    assert attempts == ["127.0.0.1:1", "127.0.0.1:2"]
