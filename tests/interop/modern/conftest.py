"""A broker with the modern port for unmodified clients of today."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess

OPTIONS = {
    "modern.port": 0,
    "log.format": "2011",
    "num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
    "log.default.flush.scheduler.interval.ms": 20,
}


@pytest.fixture(scope="package")
def broker() -> Iterator[BrokerProcess]:
    """One broker for all clients; every test has topics and groups of its own."""
    with BrokerProcess(options=OPTIONS) as process:
        yield process


@pytest.fixture
def bootstrap(broker: BrokerProcess) -> str:
    """What clients call bootstrap.servers."""
    return f"127.0.0.1:{broker.modern_port}"


@pytest.fixture
def unique() -> str:
    """A part of a name nobody else has, so that a test may run again against the same broker."""
    return uuid.uuid4().hex[:8]
