"""A real broker whose modern port makes modern topics, one for each file of tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from tests.integration.since2011.wire_client import WireClient

OPTIONS = {
    "modern.port": 0,
    "group.initial.rebalance.delay.ms": 0,
    # Records of the tests are stamped 2023, and retention goes by that.
    "log.initial.task.delay.ms": 3_600_000,
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
def topic(client: WireClient) -> str:
    """A topic nobody else has; it is made when it is first produced to."""
    return f"t-{uuid.uuid4().hex[:8]}"
