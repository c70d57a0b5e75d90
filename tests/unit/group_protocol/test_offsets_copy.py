"""The copies of committed offsets in ZooKeeper, and the claim to write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.offsets_copy import (
    BATCH,
    CLAIMS,
    OffsetsCopy,
    decode_copy,
    encode_copy,
    node_name,
    plain_name,
)
from consumers.group_protocol.offsets_log import partition_of
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from zk_registry import operations as ops
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.tree import walk

T0 = TopicPartition("t", 0)
HERE = partition_of("g")


def committed(offset: int, at_ms: int = 1_000, note: str = "") -> CommittedOffset:
    return CommittedOffset(offset, 0, note, at_ms)


def nodes(session: FakeSession) -> list[str]:
    return [node.path for node in walk(session, "/kafka2011/groups") if node.path != CLAIMS]


@pytest.mark.parametrize("group", ["a/b", "with space", ".", "..", "%2F", "ü", "\x00\x1f", "日本", "~", "../.."])
def test_any_group_id_is_a_node_of_its_own(group: str) -> None:
    """Group ids may hold anything; nodes may not: slashes, dots, controls and others are escaped. Spec §11."""
    name = node_name(group)
    assert plain_name(name) == group
    assert name.isascii()
    assert "/" not in name
    assert name not in (".", "..")
    assert name.isprintable()
    world = FakeZooKeeper()
    number = partition_of(group)
    copy = OffsetsCopy(world.session(), 1)
    copy.write(number, {(group, T0): committed(7)})
    assert OffsetsCopy(world.session(), 2).read(number) == {(group, T0): committed(7)}


@given(st.text(st.characters(), min_size=1))
def test_escaping_loses_nothing(text: str) -> None:
    """Two groups never share a node. Spec §11."""
    assert plain_name(node_name(text)) == text


@given(
    st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 31), (1 << 31) - 1), st.text(), st.integers(0, 1 << 62)
)
def test_a_copy_says_all_of_a_commit(offset: int, epoch: int, note: str, at_ms: int) -> None:
    """Offset, leader epoch, metadata and time, in a text people can read. Spec §11 (offset commit value)."""
    whole = CommittedOffset(offset, epoch, note, at_ms)
    assert decode_copy(encode_copy(whole)) == whole


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"42",
        b"{}",
        b"\xff",
        b"[1,2,3,4]",
        b"[" * 50_000,
        b'{"offset": true, "leader_epoch": 0, "metadata": "", "commit_ms": 0}',
        b'{"offset": 9223372036854775808, "leader_epoch": 0, "metadata": "", "commit_ms": 0}',
        b'{"offset": 1, "leader_epoch": 0, "metadata": 3, "commit_ms": 0}',
    ],
    ids=range(9),
)
def test_what_is_no_copy_is_passed_over(value: bytes) -> None:
    """A node nobody should have written stops nobody, and is told (§3.2)."""
    with pytest.raises((ValueError, RecursionError)):
        decode_copy(value)
    world, journal = FakeZooKeeper(), Journal()
    session = world.session()
    copy = OffsetsCopy(session, 1, journal=journal)
    copy.write(HERE, {("g", T0): committed(7), ("g", TopicPartition("t", 1)): committed(8)})
    session.perform(ops.Set(f"/kafka2011/groups/{HERE}/g/t/1", value))
    session.perform(ops.Create(f"/kafka2011/groups/{HERE}/g/t/x"))
    session.perform(ops.Create(f"/kafka2011/groups/{HERE}/not%of-ours"))
    session.perform(ops.Create(f"/kafka2011/groups/{HERE}/elsewhere"))
    assert copy.read(HERE) == {("g", T0): committed(7)}
    assert [entry.event.name for entry in journal.since()] == ["node_ignored"] * 4


def test_a_tombstone_takes_the_last_node_and_what_held_it() -> None:
    """No node of a deleted group is left; others stay. Spec §11 (tombstones)."""
    session = FakeZooKeeper().session()
    copy = OffsetsCopy(session, 1)
    u5 = TopicPartition("u", 5)
    copy.write(HERE, {("g", T0): committed(1), ("g", u5): committed(2)})
    copy.write(HERE, {("g", u5): None})
    assert copy.read(HERE) == {("g", T0): committed(1)}
    assert f"/kafka2011/groups/{HERE}/g/u" not in nodes(session)
    copy.write(HERE, {("g", T0): None, ("g", TopicPartition("never", 0)): None})
    assert nodes(session) == ["/kafka2011/groups", f"/kafka2011/groups/{HERE}"]


class Counting:
    """A registry that counts what it is asked."""

    def __init__(self, session: FakeSession) -> None:
        self._session, self.asked = session, 0

    @property
    def session_id(self) -> int:
        return self._session.session_id

    def perform(self, operation: ops.Operation, watcher: object = None) -> object:
        self.asked += 1
        return self._session.perform(operation)


def test_what_exists_is_written_many_at_a_time() -> None:
    """A round over many offsets is a few transactions, not one request each."""
    registry = Counting(FakeZooKeeper().session())
    copy = OffsetsCopy(registry, 1)
    many = {("g", TopicPartition("t", n)): committed(n) for n in range(3 * BATCH)}
    copy.write(HERE, many)
    registry.asked = 0
    later = {at: committed(each.offset + 1) for at, each in many.items()}
    copy.write(HERE, later)
    assert registry.asked == 3
    assert copy.read(HERE) == later


def test_nodes_removed_by_hand_are_made_again() -> None:
    """A copy that vanished is written, not lost with the others of its transaction."""
    session = FakeZooKeeper().session()
    copy = OffsetsCopy(session, 1)
    both = {("g", T0): committed(1), ("g", TopicPartition("t", 1)): committed(2)}
    copy.write(HERE, both)
    session.perform(ops.Delete(f"/kafka2011/groups/{HERE}/g/t/0"))
    copy.write(HERE, both)
    assert copy.read(HERE) == both


def test_a_claim_is_for_one() -> None:
    """While one broker holds a claim no other gets it; then it does, and learns who held it (§3.2, ownership)."""
    world = FakeZooKeeper()
    one, two = OffsetsCopy(world.session(), 1), OffsetsCopy(world.session(), 2)
    assert one.claim([3, 4]) == ({3, 4}, {})
    assert two.claim([3, 5]) == ({5}, {3: "broker 1"})
    one.release([3], again=False)
    assert two.claim([3]) == ({3}, {})
    one.release([3], again=True)
    assert one.claim([3]) == (set(), {3: "broker 2"})


def test_a_claim_goes_with_its_session() -> None:
    """A broker that died holds nothing (§3.2, "ephemeral")."""
    world = FakeZooKeeper()
    first = world.session()
    OffsetsCopy(first, 1).claim([3])
    first.expire()
    assert OffsetsCopy(world.session(), 2).claim([3]) == ({3}, {})


def test_the_claim_of_our_own_last_life_is_ours() -> None:
    """A broker killed and started again does not wait for its own dead session."""
    world = FakeZooKeeper()
    before, now = world.session(), world.session()
    OffsetsCopy(before, 1).claim([3])
    assert OffsetsCopy(now, 1).claim([3]) == ({3}, {})
    before.expire()
    assert now.perform(ops.Get(f"{CLAIMS}/3")).ephemeral_owner == now.session_id


def test_a_claim_whose_answer_was_lost_is_ours() -> None:
    """ConnectionLoss means perhaps done; the next try finds it done."""
    session = FakeZooKeeper().session()
    copy = OffsetsCopy(session, 1)
    copy.claim([])
    session.perform(ops.Exists(CLAIMS))
    for _ in range(2):
        session.lose_reply(applied=True)
    with pytest.raises(ops.ConnectionLoss):
        copy.claim([3])
    with pytest.raises(ops.ConnectionLoss):
        copy.claim([3])
    assert copy.claim([3]) == ({3}, {})


def test_who_coordinated_last_is_known() -> None:
    """Nobody, we ourselves, or someone else in between; and nobody may trust its members half-way through. Spec §7."""
    world = FakeZooKeeper()
    one, two = OffsetsCopy(world.session(), 1), OffsetsCopy(world.session(), 2)
    assert one.succeed(3)
    one.settle(3)
    assert one.succeed(3)
    assert not two.succeed(3)
    assert not two.succeed(3)
    assert not one.succeed(3)
    two.settle(3)
    assert two.succeed(3)
    assert not one.succeed(3)
