"""The consumer protocol's bytes, against what librdkafka sends."""

from __future__ import annotations

import pytest

from consumers.group_protocol.subscription import (
    Subscription,
    decode_assignment,
    encode_assignment,
    sticky_user_data,
    topics_of,
)
from kafka2011.types import TopicPartition

SEEN = bytes.fromhex("0003 00000002 0002 7430 0002 7431 00000000 00000000 ffffffff 0000")
ASSIGNED = bytes.fromhex(
    "0000 00000002 0002 7430 00000002 00000000 00000001 0002 7431 00000002 00000000 00000001 00000000"
)


def test_the_recorded_subscription() -> None:
    """Read and written byte for byte. See docs/group-protocol.md."""
    subscription = Subscription(("t0", "t1"), b"", (), -1, "")
    assert Subscription.decode(SEEN) == subscription
    assert subscription.encode() == SEEN


def test_the_recorded_assignment() -> None:
    """Read and written byte for byte; zero bytes mean nothing assigned. See docs/group-protocol.md."""
    partitions = tuple(TopicPartition(topic, n) for topic in ("t0", "t1") for n in (0, 1))
    assert decode_assignment(ASSIGNED) == partitions
    assert encode_assignment(partitions) == ASSIGNED
    assert decode_assignment(b"") == ()


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_is_read_back(version: int) -> None:
    """What a version has no room for is lost, the rest is kept. See docs/group-protocol.md."""
    whole = Subscription(("t",), b"u", (TopicPartition("t", 1),), 7, "r")
    read = Subscription.decode(whole.encode(version))
    assert read.topics == ("t",)
    assert read.owned == (whole.owned if version >= 1 else ())
    assert read.generation == (7 if version >= 2 else -1)
    assert read.rack == ("r" if version >= 3 else None)


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    """Trailing bytes are ignored. See docs/group-protocol.md."""
    newer = (9).to_bytes(2, "big") + SEEN[2:] + b"more"
    assert Subscription.decode(newer).topics == ("t0", "t1")


def test_old_sticky_members_carry_what_they_own_in_the_user_data() -> None:
    """Layout V1, used where the subscription itself has no room. See docs/group-protocol.md."""
    owned = (TopicPartition("t", 0), TopicPartition("t", 2))
    read = Subscription.decode(Subscription(("t",), sticky_user_data(owned, 4)).encode(0))
    assert (read.owned, read.generation) == (owned, 4)
    assert Subscription.decode(Subscription(("t",), b"nonsense").encode(0)).owned == ()


@pytest.mark.parametrize("size", range(len(SEEN)))
def test_cut_bytes_are_no_subscription(size: int) -> None:
    """A clean ValueError for every cut; the coordinator then simply does not know the topics."""
    with pytest.raises(ValueError, match=r"left|wanted|array|null"):
        Subscription.decode(SEEN[:size])
    assert topics_of(SEEN[:size]) is None
