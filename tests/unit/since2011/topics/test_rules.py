"""Names of topics and places of replicas: pure rules."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from since2011.topics.errors import (
    InvalidAssignment,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
)
from since2011.topics.names import check_collision, check_name
from since2011.topics.placement import check_assignments, place


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "...", "__consumer_offsets"])
def test_names_a_topic_may_have(name: str) -> None:
    """Letters, digits, dot, underscore and dash, up to 249, are a name (Kafka's Topic.validate)."""
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a:b"])
def test_names_no_topic_may_have(name: str) -> None:
    """What is empty, too long, a directory or has other characters is refused with 17 (docs/since-2011.md)."""
    with pytest.raises(InvalidTopic) as refused:
        check_name(name)
    assert refused.value.code == 17


def test_dots_and_underscores_collide() -> None:
    """a.b beside a_b is refused with 17, as the names of metrics would be one (docs/since-2011.md)."""
    with pytest.raises(InvalidTopic, match=r"a\.b cannot be told from a_b"):
        check_collision("a.b", ["x", "a_b"])
    check_collision("a.b", ["a.b", "a.c", "ab"])
    check_collision("ab", ["a.b"])


def test_leaders_go_round_and_followers_shift() -> None:
    """The placement of Kafka's own documentation: five brokers, ten partitions, three replicas (AdminUtils)."""
    placed = place(dict.fromkeys(range(5)), 10, 3, Random(0), start=0)
    rows = [placed[index] for index in range(10)]
    assert rows[:5] == [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]
    assert rows[5:] == [(0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2)]


def test_racks_take_turns() -> None:
    """Every rack gets a replica before one gets two (AdminUtils, rack aware)."""
    racks = {0: "r1", 1: "r3", 2: "r3", 3: "r2", 4: "r2", 5: "r1"}
    placed = place(racks, 6, 3, Random(0), start=0)
    assert [placed[index] for index in range(6)] == [
        (0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3),
    ]  # fmt: skip


@given(st.integers(1, 12), st.integers(1, 40), st.data())
def test_placement_is_even_and_apart(n_brokers: int, n_partitions: int, data: st.DataObject) -> None:
    """No broker holds a partition twice, leaders differ by at most one, racks are used evenly (AdminUtils)."""
    n_replicas = data.draw(st.integers(1, n_brokers))
    n_racks = data.draw(st.integers(0, n_brokers))
    brokers = {10 * n: f"rack{n % n_racks}" if n_racks else None for n in range(n_brokers)}
    placed = place(brokers, n_partitions, n_replicas, Random(data.draw(st.integers(0, 9))))
    assert sorted(placed) == list(range(n_partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == n_replicas
        if n_racks:
            assert len({brokers[broker] for broker in replicas}) == min(n_replicas, n_racks)
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1
    check_assignments(placed, brokers)


def test_what_cannot_be_placed() -> None:
    """No partitions, no replicas, more replicas than brokers, racks on some only: each its error.

    See docs/since-2011.md.
    """
    two: dict[int, str | None] = {1: None, 2: None}
    with pytest.raises(InvalidPartitions):
        place(two, 0, 1, Random(0))
    with pytest.raises(InvalidReplicationFactor):
        place(two, 1, 0, Random(0))
    with pytest.raises(InvalidReplicationFactor, match="2 brokers are alive"):
        place(two, 1, 3, Random(0))
    with pytest.raises(InvalidReplicationFactor, match="rack"):
        place({1: "r", 2: None}, 1, 1, Random(0))


@pytest.mark.parametrize(
    "assignments", [{1: [1]}, {0: [1], 2: [1]}, {0: [1, 1]}, {0: [1], 1: [1, 2]}, {0: []}, {0: [7]}]
)
def test_partitions_placed_by_hand(assignments: dict[int, list[int]]) -> None:
    """Gaps, a broker named twice, unequal rows, brokers that are not there: 39 (docs/since-2011.md)."""
    with pytest.raises(InvalidAssignment):
        check_assignments(assignments, {1: None, 2: None})
