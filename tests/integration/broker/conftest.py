"""One broker for all tests that only talk to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from tests.integration.broker.client import RawClient

_numbers = itertools.count()


@pytest.fixture(scope="package")
def broker() -> Iterator[BrokerProcess]:
    """A broker that flushes every message, with two partitions for every topic and small messages."""
    options = {
        "log.flush.interval": 1,
        "num.partitions": 2,
        "max.message.size": 1000,
        "max.socket.request.bytes": 1 << 20,
        "produce.acks.enable": True,
        "max.topics": 500,
    }
    with BrokerProcess(options=options) as process:
        yield process


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    """A fresh connection."""
    with RawClient(broker) as connection:
        yield connection


@pytest.fixture
def topic() -> str:
    """A topic nobody else uses."""
    return f"topic-{next(_numbers)}"
