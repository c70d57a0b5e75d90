"""One numbering of a topic's partitions, kept for good."""

from __future__ import annotations

from typing import Any

import pytest

from kafka2011.types import BrokerPartition
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import Get, Operation
from zk_registry.partition_numbering import PartitionRows, encode_row, parse_row


def row(*names: str) -> tuple[BrokerPartition, ...]:
    return tuple(BrokerPartition.parse(name) for name in names)


@pytest.fixture
def session() -> FakeSession:
    made = FakeZooKeeper().session()
    made.start()
    return made


def test_a_number_keeps_its_meaning_when_brokers_come_and_go(session: FakeSession) -> None:
    """A partition keeps its place in the row while its broker is away and when others join."""
    rows = PartitionRows(session)
    assert rows.extended("clicks", row("1-0", "1-1")) == row("1-0", "1-1")
    assert rows.extended("clicks", row("0-0", "1-0", "1-1")) == row("1-0", "1-1", "0-0")
    assert rows.extended("clicks", row("0-0")) == row("1-0", "1-1", "0-0")


def test_a_topic_nobody_announced_has_no_row(session: FakeSession) -> None:
    """Looking at an unknown topic writes nothing."""
    assert PartitionRows(session).extended("clicks", ()) == ()


def test_two_brokers_extending_at_once_agree() -> None:
    """Whoever writes second reads again, so that both end with the same row."""
    world = FakeZooKeeper()
    first, second = world.session(), world.session()
    first.start(), second.start()
    PartitionRows(first).extended("clicks", row("0-0"))

    class Late:
        """A session whose first look is overtaken by another broker's write."""

        session_id = second.session_id
        overtaken = False

        def perform(self, operation: Operation, watcher: Any = None) -> Any:
            answer = second.perform(operation, watcher)
            if isinstance(operation, Get) and not self.overtaken:
                self.overtaken = True
                PartitionRows(first).extended("clicks", row("1-0"))
            return answer

    assert PartitionRows(Late()).extended("clicks", row("2-0")) == row("0-0", "1-0", "2-0")


def test_a_damaged_row_is_refused() -> None:
    """A row that cannot be read is an error, never a new numbering."""
    assert parse_row(encode_row(row("0-0", "10-3"))) == row("0-0", "10-3")
    with pytest.raises(ValueError, match="not <broker id>-<partition>"):
        parse_row(b"0-0,nonsense")
