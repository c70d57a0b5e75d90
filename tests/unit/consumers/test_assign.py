"""Lines 5-8 of Algorithm 1: who reads what."""

from __future__ import annotations

import struct
from itertools import chain

import pytest

from consumers.algorithm1 import assign
from consumers.algorithm1.assign import ThreadId
from consumers.algorithm1.editions import SOUND
from kafka2011.types import BrokerPartition


def partitions(*names: str) -> list[BrokerPartition]:
    return [BrokerPartition.parse(name) for name in names]


def shares(rule: assign.Rule, n_partitions: int, n_threads: int) -> list[list[BrokerPartition]]:
    available = [BrokerPartition(n % 3, n // 3) for n in range(n_partitions)]
    threads = [ThreadId(f"g_c{n:02}", 0) for n in range(n_threads)]
    # Order must not matter: everyone sorts for himself.
    return [list(rule(available[::-1], threads[::-1], me)) for me in threads]


@pytest.mark.parametrize("rule", [assign.fraction, assign.shipped])
def test_every_shape_up_to_12_by_12_is_shared_out_completely_disjointly_and_evenly(rule: assign.Rule) -> None:
    """Each partition has exactly one owner and shares differ by at most one, for every shape (§3.2)."""
    for p in range(13):
        for c in range(1, 13):
            found = shares(rule, p, c)
            assert sorted(chain(*found)) == sorted(BrokerPartition(n % 3, n // 3) for n in range(p)), (p, c)
            assert max(map(len, found)) - min(map(len, found)) <= 1, (p, c)


def test_the_figure_with_a_whole_number_n_leaves_partitions_unread() -> None:
    """As printed, with N a whole number, |P| mod |C| partitions have no owner, and with |C| > |P| none has (§3.2)."""
    for p in range(1, 13):
        for c in range(1, 13):
            assert sum(map(len, shares(assign.printed, p, c))) == (p // c) * c
    assert shares(assign.printed, 3, 4) == [[], [], [], []]


def test_a_share_is_one_range_of_the_sorted_partitions() -> None:
    """Consumer j takes a contiguous range, as the figure's j*N to (j+1)*N - 1 (§3.2)."""
    for p in range(13):
        for c in range(1, 13):
            everything = sorted(BrokerPartition(n % 3, n // 3) for n in range(p))
            assert list(chain(*shares(assign.fraction, p, c))) == everything


def test_the_table_of_0_7() -> None:
    """The shipped rule gives 0.7's shares: three and two, then two and two (docs/consumer.md)."""
    first, second = ThreadId("group1_consumer1", 0), ThreadId("group1_consumer2", 0)
    five = partitions("200-0", "200-1", "300-0", "300-1", "400-0")

    assert list(assign.shipped(five, [first, second], first)) == partitions("200-0", "200-1", "300-0")
    assert list(assign.shipped(five, [first, second], second)) == partitions("300-1", "400-0")
    assert list(assign.shipped(five[:4], [first, second], first)) == partitions("200-0", "200-1")
    assert list(assign.shipped(five[:4], [first, second], second)) == partitions("300-0", "300-1")


def test_one_partition_two_consumers() -> None:
    """The lower id owns the only partition, the other idles (docs/consumer.md)."""
    a, b = ThreadId("g_a", 0), ThreadId("g_b", 0)
    assert list(assign.shipped(partitions("0-0"), [b, a], a)) == partitions("0-0")
    assert list(assign.shipped(partitions("0-0"), [b, a], b)) == []


def test_0_7_sorts_text_and_fractions_sort_numbers() -> None:
    """0.7 puts 10-10 before 10-2 and stream 10 before stream 2; exact fractions order numerically.

    See docs/consumer.md.
    """
    names = partitions("2-0", "10-0", "10-1", "10-10", "10-2")
    me, other = ThreadId("g_c", 2), ThreadId("g_c", 10)

    assert list(assign.shipped(names, [other, me], other)) == partitions("10-0", "10-1", "10-10")
    assert list(assign.fraction(names, [other, me], me)) == partitions("2-0", "10-0")
    assert list(assign.fraction(names, [other, me], other)) == partitions("10-1", "10-2", "10-10")


def test_the_default_shares_exactly_as_0_7_does() -> None:
    """A group may hold members of 0.7 and ours: every shape, many streams, more than ten partitions of a broker, ids of
    any characters; both sides work out the same shares (Issue 19 A5)."""
    names = ["g_anna", "g_Ben", "g_zoë", "g_\U0001f600", "g_\uff21", "g_10", "g_9"]
    for p in range(36):
        available = [BrokerPartition(n % 3 * 5, n // 3) for n in range(p)]
        for c in range(1, len(names) + 1):
            threads = [ThreadId(name, i) for name in names[:c] for i in range(1 + 11 * (name == "g_Ben"))]
            expected = _as_0_7_shares([str(a) for a in available], [str(t) for t in threads])
            for me in threads:
                found = [str(partition) for partition in SOUND.share(available[::-1], threads[::-1], me)]
                assert found == expected[str(me)], (p, c, me)


def _as_0_7_shares(partitions: list[str], threads: list[str]) -> dict[str, list[str]]:
    """What 0.7's consumer computes, written down from its source: Java sorts strings by UTF-16 unit."""
    partitions, threads = sorted(partitions, key=_units), sorted(threads, key=_units)
    per_consumer, with_extra = len(partitions) // len(threads), len(partitions) % len(threads)
    shares = {}
    for position, thread in enumerate(threads):
        start = per_consumer * position + min(position, with_extra)
        count = per_consumer + (0 if position + 1 > with_extra else 1)
        shares[thread] = [partitions[i] for i in range(start, start + count)]
    return shares


def _units(text: str) -> list[int]:
    return [unit for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be"))]
