"""The assignors on the worked examples of docs/group-protocol.md."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from consumers.group_protocol.assignors import ASSIGNORS, Assignment, Candidate, assignor, register
from consumers.group_protocol.assignors.server import SERVER_ASSIGNORS, Wish
from kafka2011.types import TopicPartition

E1 = {"t0": 3, "t1": 3}
E2 = {"t0": 1, "t1": 2, "t2": 3}
E3 = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
ALL_STICKY = ["sticky", "cooperative-sticky"]


def parts(text: str) -> tuple[TopicPartition, ...]:
    """``t0p1 t1p0`` as partitions."""
    words = [word.partition("p") for word in text.split()]
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in words)


def words(assignment: Assignment) -> dict[str, str]:
    return {
        member: " ".join(f"{p.topic}p{p.partition}" for p in sorted(partitions))
        for member, partitions in assignment.items()
    }


def run(name: str, counts: Mapping[str, int], wishes: Mapping[str, str]) -> dict[str, str]:
    candidates = {member: Candidate(frozenset(topics.split())) for member, topics in wishes.items()}
    return words(assignor(name).assign(counts, candidates))


def everyone(counts: Mapping[str, int], *members: str) -> dict[str, str]:
    return {member: " ".join(counts) for member in members}


NESTED = {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}
DEALT_E1 = {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"}
DEALT_E3 = {"C0": "t0p0 t1p1 t3p0", "C1": "t0p1 t2p0 t3p1", "C2": "t1p0 t2p1"}


def test_range_examples() -> None:
    """Runs of neighbours, topic by topic. See docs/group-protocol.md."""
    assert run("range", E1, everyone(E1, "C0", "C1")) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"}
    assert run("range", E2, NESTED) == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    assert run("range", E3, everyone(E3, "C0", "C1", "C2")) == {
        "C0": "t0p0 t1p0 t2p0 t3p0",
        "C1": "t0p1 t1p1 t2p1 t3p1",
        "C2": "",
    }


def test_round_robin_examples() -> None:
    """Dealt in turn, passing over who does not want it. See docs/group-protocol.md."""
    assert run("roundrobin", E1, everyone(E1, "C0", "C1")) == DEALT_E1
    assert run("roundrobin", E2, NESTED) == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    assert run("roundrobin", E3, everyone(E3, "C0", "C1", "C2")) == DEALT_E3
    assert run("roundrobin", E3, everyone(E3, "C0", "C2")) == {
        "C0": "t0p0 t1p0 t2p0 t3p0",
        "C2": "t0p1 t1p1 t2p1 t3p1",
    }


@pytest.mark.parametrize("name", ALL_STICKY)
def test_sticky_examples_from_scratch(name: str) -> None:
    """Without a past it deals like round robin, and better when wishes differ. See docs/group-protocol.md."""
    assert run(name, E1, everyone(E1, "C0", "C1")) == DEALT_E1
    assert run(name, E2, NESTED) == {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}
    assert run(name, E3, everyone(E3, "C0", "C1", "C2")) == DEALT_E3


@pytest.mark.parametrize("name", ALL_STICKY)
def test_sticky_keeps_what_survivors_own(name: str) -> None:
    """E3, C1 leaves: nothing the others own moves, and one round is enough. See docs/group-protocol.md."""
    candidates = {m: Candidate(frozenset(E3), parts(DEALT_E3[m]), 1) for m in ("C0", "C2")}
    result = assignor(name).assign(E3, candidates)
    for member in candidates:
        assert set(parts(DEALT_E3[member])) <= set(result[member])
        assert len(result[member]) == 4


def test_cooperative_withholds_what_moves_until_it_is_free() -> None:
    """E1, C0 owns all six, C1 joins: nothing for C1 in the first round, three in the second.

    See docs/group-protocol.md.
    """
    rule = assignor("cooperative-sticky")
    everything = tuple(TopicPartition(topic, n) for topic in E1 for n in range(3))
    first = rule.assign(E1, {"C0": Candidate(frozenset(E1), everything, 1), "C1": Candidate(frozenset(E1))})
    assert (len(first["C0"]), first["C1"]) == (3, [])
    second = rule.assign(
        E1, {"C0": Candidate(frozenset(E1), tuple(first["C0"]), 2), "C1": Candidate(frozenset(E1), (), 2)}
    )
    assert second["C0"] == first["C0"]
    assert len(second["C1"]) == 3


def test_two_claims_to_one_partition() -> None:
    """The higher generation is believed; of equal ones neither, and the partition is withheld.

    See docs/group-protocol.md.
    """
    rule = assignor("cooperative-sticky")
    counts, wants = {"t": 2}, frozenset({"t"})
    both = parts("tp0 tp1")
    newer = rule.assign(counts, {"A": Candidate(wants, both[:1], 5), "B": Candidate(wants, both, 4)})
    assert words(newer) == {"A": "tp0", "B": "tp1"}
    equal = rule.assign(counts, {"A": Candidate(wants, both[:1], 5), "B": Candidate(wants, both[:1], 5)})
    assert both[0] not in [p for partitions in equal.values() for p in partitions]


def test_static_members_come_first_by_instance_id() -> None:
    """Range and round robin order static members by instance id, before the others. See docs/group-protocol.md."""
    wants = frozenset({"t"})
    candidates = {"z": Candidate(wants, instance="i1"), "a": Candidate(wants), "b": Candidate(wants, instance="i2")}
    for name in ("range", "roundrobin"):
        assert words(assignor(name).assign({"t": 3}, candidates)) == {"z": "tp0", "b": "tp1", "a": "tp2"}


def test_topics_nobody_knows_are_passed_over() -> None:
    """The leader's metadata decides. See docs/group-protocol.md."""
    for name in ASSIGNORS:
        assert run(name, {"t": 1}, {"A": "t ghost"}) == {"A": "tp0"}
        assert run(name, {}, {"A": "ghost"}) == {"A": ""}


def test_a_chain_of_moves_evens_out_what_no_single_move_can() -> None:
    """A holds three, B two, C one; only A to B to C helps. See docs/group-protocol.md."""
    counts = {"ab": 3, "bc": 3}
    candidates = {
        "A": Candidate(frozenset({"ab"}), parts("abp0 abp1 abp2"), 1),
        "B": Candidate(frozenset({"ab", "bc"}), parts("bcp0 bcp1"), 1),
        "C": Candidate(frozenset({"bc"}), parts("bcp2"), 1),
    }
    assert sorted(len(p) for p in assignor("sticky").assign(counts, candidates).values()) == [2, 2, 2]


def test_one_can_register_an_assignor_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by name; an unknown name says which there are."""
    monkeypatch.setitem(ASSIGNORS, "x", ASSIGNORS["range"])

    class Everything:
        name, is_cooperative = "x", False

        def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
            return {member: [] for member in candidates}

    register(Everything())
    assert run("x", {"t": 1}, {"A": "t"}) == {"A": ""}
    with pytest.raises(ValueError, match="cooperative-sticky"):
        assignor("nonsense")


def test_uniform_fills_one_member_after_the_other() -> None:
    """E1: one member has all of one topic; E2: as sticky. See docs/group-protocol.md."""
    wishes = {member: Wish(("t0", "t1")) for member in ("C0", "C1")}
    target = SERVER_ASSIGNORS["uniform"](wishes, E1, {})
    assert {frozenset(p.topic for p in partitions) for partitions in target.values()} == {
        frozenset({"t0"}),
        frozenset({"t1"}),
    }
    nested = {member: Wish(tuple(topics.split())) for member, topics in NESTED.items()}
    target = SERVER_ASSIGNORS["uniform"](nested, E2, {})
    assert words({m: list(p) for m, p in target.items()}) == run("sticky", E2, NESTED)


def test_server_side_range_is_the_same_rule() -> None:
    """See docs/group-protocol.md."""
    wishes = {member: Wish(("t0", "t1")) for member in ("C0", "C1")}
    target = SERVER_ASSIGNORS["range"](wishes, E1, {})
    assert words({m: list(p) for m, p in target.items()}) == run("range", E1, everyone(E1, "C0", "C1"))
