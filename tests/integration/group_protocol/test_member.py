"""Our own member against a real broker: four ways to share, one way to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pytest

from consumers.group_protocol.member import GroupError, Listener, Member, Message
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.types import TopicPartition
from kafka2011.wire import encode_set
from since2011.client.errors import CommitRefused
from since2011.wire.error_codes import ErrorCode
from tests.integration.group_protocol.conftest import MakeMember, fill
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


def drain(members: Iterable[Member], into: list[Message], done: Callable[[], bool], what: str) -> None:
    """Poll all until ``done``."""

    def step() -> bool:
        for each in members:
            into.extend(each.poll(0.05))
        return done()

    until(step, what)


@pytest.mark.parametrize(("protocol", "assignor"), WAYS)
def test_two_members_share_and_hand_over_without_a_duplicate(
    broker: BrokerProcess, member: MakeMember, topic: str, protocol: str, assignor: str
) -> None:
    """One reads all; a second joins and gets half; the first leaves in peace and the second has all: every message is
    delivered exactly once, because everyone came and went in peace. See docs/group-protocol.md."""
    expected = fill(broker, topic)
    seen: list[Message] = []
    diary = Diary()
    first = member(topic, protocol=protocol, assignor=assignor)
    first.subscribe([topic], diary)
    drain([first], seen, lambda: len(seen) >= len(expected), "everything was read")
    second = member(topic, protocol=protocol, assignor=assignor)
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
    assert {p: n for p, n in Counter(m.payload for m in seen).items() if n > 1} == {}
    assert {m.payload for m in seen} == expected


def fill_more(broker: BrokerProcess, topic: str, mark: bytes = b"+") -> set[bytes]:
    payloads = {b"more-%d" % partition for partition in range(4)}
    with BrokerConnection(broker.host, broker.port) as connection:
        for partition in range(4):
            connection.produce(topic, partition, encode_set([b"more-%d" % partition + mark]))
    return payloads


def test_a_static_member_restarts_without_a_rebalance(broker: BrokerProcess, member: MakeMember, topic: str) -> None:
    """The other member hears nothing, the returning one has its partitions again. See docs/group-protocol.md."""
    fill(broker, topic)
    seen: list[Message] = []
    diary = Diary()
    stays, goes = member(topic, instance="one"), member(topic, instance="two")
    stays.subscribe([topic], diary)
    goes.subscribe([topic])
    both = [stays, goes]
    drain(both, seen, lambda: [len(m.assignment()) for m in both] == [2, 2], "both have half")
    before, heard = goes.assignment(), len(diary.entries)
    goes.close()
    back = member(topic, instance="two")
    back.subscribe([topic])
    drain([stays, back], seen, lambda: back.assignment() == before, "it has its partitions again")
    assert len(diary.entries) == heard
    older = member(topic, instance="two")
    older.subscribe([topic])
    drain([older], seen, lambda: older.assignment() == before, "a second process took the name")
    with pytest.raises(GroupError, match="fenced_instance_id"):
        drain([back], seen, lambda: False, "the former one is fenced")


def test_whoever_does_not_poll_leaves_by_itself(broker: BrokerProcess, member: MakeMember, topic: str) -> None:
    """After max.poll.interval the member gives up its place; its commit is refused, and at the next poll it hears that
    its partitions are lost. See docs/group-protocol.md."""
    fill(broker, topic)
    seen: list[Message] = []
    diary = Diary()
    stuck = member(topic, max_poll_interval_ms=700, auto_commit_s=None)
    stuck.subscribe([topic], diary)
    drain([stuck], seen, lambda: len(stuck.assignment()) == 4, "it has all")
    other = member(topic, auto_commit_s=None)
    other.subscribe([topic])
    drain([other], seen, lambda: len(other.assignment()) == 4, "the other has all, the first does not poll")
    with pytest.raises(CommitRefused) as refused:
        stuck.commit({TopicPartition(topic, 0): 0})
    assert refused.value.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    drain([stuck], seen, lambda: ("lost", (0, 1, 2, 3)) in diary.entries, "it hears of it")


def test_seek_pause_commit_and_resume(broker: BrokerProcess, member: MakeMember, topic: str) -> None:
    """Positions are 2011 offsets; a paused partition is silent; a commit is where the next begins.

    See docs/group-protocol.md.
    """
    expected = fill(broker, topic)
    part = TopicPartition(topic, 0)
    seen: list[Message] = []
    with member(topic, auto_commit_s=None, protocol="consumer") as reader:
        reader.subscribe([topic])
        drain([reader], seen, lambda: len(seen) >= len(expected), "everything was read")
        mine = [m for m in seen if m.partition == 0]
        assert mine[0].next_offset == mine[1].offset
        assert reader.position(part) == mine[-1].next_offset
        reader.pause(part)
        reader.seek(part, mine[10].offset)
        again: list[Message] = []
        assert reader.poll(0.3) == []
        reader.resume(part)
        drain([reader], again, lambda: len(again) >= len(mine) - 10, "read again from the tenth on")
        assert [m.payload for m in again] == [m.payload for m in mine[10:]]
        told: list[object] = []
        reader.commit_async({part: mine[20].offset}, told.append)
        until(lambda: told, "the commit was answered")
        assert told == [None]
        assert reader.committed([part]) == {part: mine[20].offset}
    with member(topic, auto_commit_s=None) as next_one:
        next_one.subscribe([topic])
        first: list[Message] = []
        drain([next_one], first, lambda: any(m.partition == 0 for m in first), "the partition is read")
        assert next(m.offset for m in first if m.partition == 0) == mine[20].offset
