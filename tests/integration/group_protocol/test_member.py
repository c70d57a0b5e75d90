"""Our own member against a real broker: four ways to share, one way to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pytest

from consumers.group_protocol.member import (
    CommitRefused,
    Consumer,
    ConsumerRecord,
    GroupError,
    Listener,
    OffsetAndMetadata,
)
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from kafka2011.wire import encode_set
from since2011.wire.error_codes import ErrorCode
from tests.integration.group_protocol.conftest import MakeConsumer, fill
from tests.waiting import until

WAYS = [
    ("classic", "range"),
    ("classic", "roundrobin"),
    ("classic", "sticky"),
    ("classic", "cooperative-sticky"),
    ("consumer", "uniform"),
]


class Diary(Listener):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, tuple[int, ...]]] = []

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("assigned", tuple(p.partition for p in partitions)))

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("revoked", tuple(p.partition for p in partitions)))

    def lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("lost", tuple(p.partition for p in partitions)))

    def given_up(self) -> set[int]:
        return {p for what, partitions in self.entries if what != "assigned" for p in partitions}


def way(protocol: str, assignor: str) -> dict[str, object]:
    """Settings for a way to share."""
    name = "partition_assignment_strategy" if protocol == "classic" else "group_remote_assignor"
    return {"group_protocol": protocol, name: assignor}


def drain(members: Iterable[Consumer], into: list[ConsumerRecord], done: Callable[[], bool], what: str) -> None:
    """Poll all until ``done``."""

    def step() -> bool:
        for each in members:
            into.extend(each.poll(0.05))
        return done()

    until(step, what)


@pytest.mark.parametrize(("protocol", "assignor"), WAYS)
def test_two_members_share_and_hand_over_without_a_duplicate(
    broker: BrokerProcess, member: MakeConsumer, topic: str, protocol: str, assignor: str
) -> None:
    """One reads all; a second joins and gets half; the first leaves in peace and the second has all: every message is
    delivered exactly once, because everyone came and went in peace. See docs/group-protocol.md."""
    expected = fill(broker, topic)
    seen: list[ConsumerRecord] = []
    diary = Diary()
    how = way(protocol, assignor)
    first = member(topic, **how)
    first.subscribe([topic], diary)
    drain([first], seen, lambda: len(seen) >= len(expected), "everything was read")
    second = member(topic, **how)
    second.subscribe([topic])
    both = [first, second]
    drain(both, seen, lambda: [len(m.assignment()) for m in both] == [2, 2], "both have half")
    assert first.assignment().isdisjoint(second.assignment())
    kept = {p.partition for p in first.assignment()}
    if assignor in ("cooperative-sticky", "uniform"):
        assert diary.given_up().isdisjoint(kept)  # nothing was revoked that did not move
    expected |= {p + b"+" for p in fill_more(broker, topic)}
    drain(both, seen, lambda: len(seen) >= len(expected), "what was published meanwhile was read")
    first.close()
    drain([second], seen, lambda: len(second.assignment()) == 4, "the second has all")
    expected |= {p + b"++" for p in fill_more(broker, topic, b"++")}
    drain([second], seen, lambda: len(seen) >= len(expected), "the rest was read")
    assert {p: n for p, n in Counter(m.value for m in seen).items() if n > 1} == {}
    assert {m.value for m in seen} == expected


def fill_more(broker: BrokerProcess, topic: str, mark: bytes = b"+") -> set[bytes]:
    payloads = {b"more-%d" % partition for partition in range(4)}
    with BrokerConnection(broker.host, broker.port) as connection:
        for partition in range(4):
            connection.produce(topic, partition, encode_set([b"more-%d" % partition + mark]))
    return payloads


def test_a_static_member_restarts_without_a_rebalance(broker: BrokerProcess, member: MakeConsumer, topic: str) -> None:
    """The other member hears nothing, the returning one has its partitions again. See docs/group-protocol.md."""
    fill(broker, topic)
    seen: list[ConsumerRecord] = []
    diary = Diary()
    stays, goes = member(topic, group_instance_id="one"), member(topic, group_instance_id="two")
    stays.subscribe([topic], diary)
    goes.subscribe([topic])
    both = [stays, goes]
    drain(both, seen, lambda: [len(m.assignment()) for m in both] == [2, 2], "both have half")
    before, heard = goes.assignment(), len(diary.entries)
    goes.close()
    back = member(topic, group_instance_id="two")
    back.subscribe([topic])
    drain([stays, back], seen, lambda: back.assignment() == before, "it has its partitions again")
    assert len(diary.entries) == heard
    older = member(topic, group_instance_id="two")
    older.subscribe([topic])
    drain([older], seen, lambda: older.assignment() == before, "a second process took the name")
    with pytest.raises(GroupError, match="fenced_instance_id"):
        drain([back], seen, lambda: False, "the former one is fenced")


def test_whoever_does_not_poll_leaves_by_itself(broker: BrokerProcess, member: MakeConsumer, topic: str) -> None:
    """After max.poll.interval the member gives up its place; its commit is refused, and at the next poll it hears that
    its partitions are lost. See docs/group-protocol.md."""
    fill(broker, topic)
    seen: list[ConsumerRecord] = []
    diary = Diary()
    stuck = member(topic, max_poll_interval_ms=700, enable_auto_commit=False)
    stuck.subscribe([topic], diary)
    drain([stuck], seen, lambda: len(stuck.assignment()) == 4, "it has all")
    other = member(topic, enable_auto_commit=False)
    other.subscribe([topic])
    drain([other], seen, lambda: len(other.assignment()) == 4, "the other has all, the first does not poll")
    with pytest.raises(CommitRefused) as refused:
        stuck.commit_sync({TopicPartition(topic, 0): 0})
    assert refused.value.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    drain([stuck], seen, lambda: ("lost", (0, 1, 2, 3)) in diary.entries, "it hears of it")


def test_seek_pause_commit_and_resume(broker: BrokerProcess, member: MakeConsumer, topic: str) -> None:
    """In a topic of 2011 offset + 1 is the 2011 offset of the next message; a paused partition is silent; a commit is
    where the next begins.

    See docs/group-protocol.md.
    """
    expected = fill(broker, topic)
    part = TopicPartition(topic, 0)
    seen: list[ConsumerRecord] = []
    with member(topic, enable_auto_commit=False, group_protocol="consumer") as reader:
        reader.subscribe([topic])
        drain([reader], seen, lambda: len(seen) >= len(expected), "everything was read")
        mine = [m for m in seen if m.partition == 0]
        assert mine[1].offset - mine[0].offset == len(encode_set([mine[1].value or b""]))
        assert reader.position(part) == mine[-1].offset + 1
        reader.pause(part)
        reader.seek(part, mine[9].offset + 1)
        again: list[ConsumerRecord] = []
        assert reader.poll(0.3) == []
        reader.resume(part)
        drain([reader], again, lambda: len(again) >= len(mine) - 10, "read again from the tenth on")
        assert [m.value for m in again] == [m.value for m in mine[10:]]
        told: list[object] = []
        reader.commit_async({part: mine[19].offset + 1}, lambda offsets, error: told.append((offsets, error)))
        until(lambda: reader.poll(0.01) == [] and told, "the commit was answered")
        stored = OffsetAndMetadata(mine[19].offset + 1)
        assert told == [({part: stored}, None)]
        assert reader.committed([part]) == {part: stored}
    with member(topic, enable_auto_commit=False) as next_one:
        next_one.subscribe([topic])
        first: list[ConsumerRecord] = []
        drain([next_one], first, lambda: any(m.partition == 0 for m in first), "the partition is read")
        assert next(m.offset for m in first if m.partition == 0) == mine[20].offset
