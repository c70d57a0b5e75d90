"""A real broker with the modern port open, one for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from tests.integration.since2011.wire_client import WireClient

OPTIONS = {
    "modern.port": 0,
    "log.format": "2011",
    "group.initial.rebalance.delay.ms": 0,
    "log.default.flush.scheduler.interval.ms": 20,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker shared by the tests of one file; each uses its own topics."""
    with BrokerProcess(options=OPTIONS) as process:
        yield process


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[WireClient]:
    """A connection of the test's own."""
    assert broker.modern_port is not None
    with WireClient(broker.modern_port) as found:
        yield found


@pytest.fixture
def other(broker: BrokerProcess) -> Iterator[WireClient]:
    """A second connection."""
    assert broker.modern_port is not None
    with WireClient(broker.modern_port) as found:
        yield found
