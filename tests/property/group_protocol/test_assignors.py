"""What every assignor promises, for any members, topics and past."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.group_protocol.assignors import ASSIGNORS, Candidate, assignor
from consumers.group_protocol.assignors.candidate import believed_owners
from consumers.group_protocol.assignors.server import SERVER_ASSIGNORS, Wish
from kafka2011.types import TopicPartition

MEMBERS = ["a", "b", "c", "d", "e", "f"]
TOPICS = ["t0", "t1", "t2", "t3"]
counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 5))
Situation = tuple[dict[str, int], dict[str, Candidate]]


@st.composite
def situations(draw: st.DrawFn, *, equal: bool = False) -> Situation:
    """Members with wishes and a past; claims of the past may contradict each other."""
    counts = draw(counts_of)
    everything = [TopicPartition(topic, n) for topic, count in counts.items() for n in range(count)]
    shared = frozenset(draw(st.sets(st.sampled_from(TOPICS))))
    candidates = {}
    for member in draw(st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True)):
        wants = shared if equal else frozenset(draw(st.sets(st.sampled_from(TOPICS))))
        owned = draw(st.lists(st.sampled_from(everything), unique=True, max_size=8)) if everything else []
        generation = draw(st.integers(-1, 3))
        instance = draw(st.sampled_from([None, None, f"i-{member}"]))
        candidates[member] = Candidate(wants, tuple(owned), generation, instance)
    return counts, candidates


def wanted(counts: dict[str, int], candidates: dict[str, Candidate]) -> set[TopicPartition]:
    topics = {topic for candidate in candidates.values() for topic in candidate.topics}
    return {TopicPartition(topic, n) for topic in topics & counts.keys() for n in range(counts[topic])}


def check_fair(
    counts: dict[str, int], candidates: dict[str, Candidate], shares: dict[str, list[TopicPartition]]
) -> None:
    """Nobody holds a partition that someone with two fewer could have, even by passing others on."""
    edges = {
        (giver, taker)
        for giver in shares
        for taker in shares
        if any(partition.topic in candidates[taker].topics for partition in shares[giver])
    }
    for middle in shares:
        edges |= {(a, b) for a, m in edges for n, b in edges if m == n == middle}
    for giver, taker in edges:
        assert len(shares[giver]) - len(shares[taker]) <= 1


@settings(max_examples=80, deadline=None, derandomize=True)
@given(situation=situations())
def test_every_partition_goes_to_one_member_that_wants_it(situation: Situation) -> None:
    """Complete and disjoint; cooperative only leaves out what someone else still holds. See docs/group-protocol.md."""
    counts, candidates = situation
    for name in ASSIGNORS:
        shares = assignor(name).assign(counts, candidates)
        assert shares.keys() == candidates.keys()
        given_out = [partition for share in shares.values() for partition in share]
        assert len(given_out) == len(set(given_out))
        for member, share in shares.items():
            assert all(partition.topic in candidates[member].topics for partition in share)
        missing = wanted(counts, candidates) - set(given_out)
        claimed = {partition for candidate in candidates.values() for partition in candidate.owned}
        assert not missing if name != "cooperative-sticky" else missing <= claimed


@settings(max_examples=80, deadline=None, derandomize=True)
@given(situation=situations())
def test_sticky_and_uniform_are_as_even_as_wishes_allow(situation: Situation) -> None:
    """No chain of moves would make it more even. See docs/group-protocol.md."""
    counts, candidates = situation
    check_fair(counts, candidates, assignor("sticky").assign(counts, candidates))
    wishes = {member: Wish(tuple(sorted(candidate.topics))) for member, candidate in candidates.items()}
    target = {member: frozenset(candidate.owned) for member, candidate in candidates.items()}
    for a, b in combinations(sorted(target), 2):
        target[b] -= target[a]
    uniform = SERVER_ASSIGNORS["uniform"](wishes, counts, target)
    assert sorted(p for share in uniform.values() for p in share) == sorted(wanted(counts, candidates))
    check_fair(counts, candidates, {member: sorted(share) for member, share in uniform.items()})


@settings(max_examples=80, deadline=None, derandomize=True)
@given(situation=situations(equal=True))
def test_sticky_moves_no_more_than_it_must(situation: Situation) -> None:
    """Equal wishes: each keeps all it owned up to its quota; only the surplus moves. See docs/group-protocol.md."""
    counts, candidates = situation
    owners = believed_owners(counts, candidates)
    held = {member: sum(owner == member for owner in owners.values()) for member in candidates}
    total = len(wanted(counts, candidates))
    least, larger = divmod(total, len(candidates))
    above = sorted((max(0, n - least) for n in held.values()), reverse=True)
    must_move = sum(above) - sum(min(1, n) for n in above[:larger])
    for name in ("sticky", "cooperative-sticky"):
        shares = assignor(name).assign(counts, candidates)
        kept = sum(owners.get(partition) == member for member, share in shares.items() for partition in share)
        assert kept == len(owners) - must_move


@settings(max_examples=60, deadline=None, derandomize=True)
@given(situation=situations(equal=True))
def test_cooperative_reaches_the_balance_in_two_rounds(situation: Situation) -> None:
    """After everyone let go what it was told to, the second round leaves nothing out and moves nothing.

    See docs/group-protocol.md.
    """
    counts, candidates = situation
    rule = assignor("cooperative-sticky")
    first = rule.assign(counts, candidates)
    again = {m: Candidate(c.topics, tuple(first[m]), 9, c.instance) for m, c in candidates.items()}
    second = rule.assign(counts, again)
    assert sorted(p for share in second.values() for p in share) == sorted(wanted(counts, candidates))
    assert all(set(first[member]) <= set(second[member]) for member in first)
    sizes = [len(share) for share in second.values()]
    assert max(sizes) - min(sizes) <= 1
