"""A real broker with its modern port open, with quick groups."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from consumers.group_protocol.member import Consumer
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set

QUICK = {
    "modern.port": 0,
    "log.format": "2011",
    "num.partitions": 4,
    "log.flush.interval": 1,
    "group.initial.rebalance.delay.ms": 50,
    "group.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 300_000,
}
N_MESSAGES = 50


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options=QUICK) as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """One to be killed."""
    with BrokerProcess(tmp_path / "data", options=QUICK) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A name nobody has used, for a topic or a group."""
    return f"t-{uuid.uuid4().hex[:12]}"


MakeConsumer = Callable[..., Consumer]


@pytest.fixture
def member(broker: BrokerProcess) -> Iterator[MakeConsumer]:
    """Makes members of ``broker``'s groups and closes them in the end."""
    with ExitStack() as stack:
        yield lambda group, **how: stack.enter_context(new_member(broker, group, **how))


def new_member(broker: BrokerProcess, group: str, **how: object) -> Consumer:
    """A consumer that heartbeats quickly and whose session never decides a test."""
    settings: dict[str, object] = {
        "bootstrap_servers": f"{broker.host}:{broker.modern_port}",
        "group_id": group,
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 300_000,
        "auto_commit_interval_ms": 1_000,
        "auto_offset_reset": "earliest",
        "metadata_max_age_ms": 1_000,
    }
    return Consumer(settings | how)


def fill(broker: BrokerProcess, topic: str) -> set[bytes]:
    """Publish to all four partitions over the 2011 port; what was published."""
    payloads: set[bytes] = set()
    with BrokerConnection(broker.host, broker.port) as connection:
        for partition in range(4):
            some = [b"%s-%d-%d" % (topic.encode(), partition, n) for n in range(N_MESSAGES)]
            connection.produce(topic, partition, encode_set(some))
            payloads |= set(some)
    return payloads
