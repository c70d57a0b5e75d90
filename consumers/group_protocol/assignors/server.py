"""Assignors that run in the broker (KIP-848).

See docs/group-protocol.md. Given what members wish, the partitions of each topic, and the current target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumers.group_protocol.assignors.candidate import Assignment, Candidate, wanted_partitions
from consumers.group_protocol.assignors.even import Range
from consumers.group_protocol.assignors.sticky import share_by_wish
from kafka2011.types import TopicPartition

Target = dict[str, frozenset[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a member subscribes to, and under which static name."""

    topics: tuple[str, ...]
    instance: str | None = None


ServerAssignor = Callable[[Mapping[str, Wish], Mapping[str, int], Mapping[str, frozenset[TopicPartition]]], Target]


def uniform(
    wishes: Mapping[str, Wish], counts: Mapping[str, int], target: Mapping[str, frozenset[TopicPartition]]
) -> Target:
    """Equal sizes; members keep their target, and free partitions fill one member after the other."""
    candidates = _candidates(wishes)
    wanted = wanted_partitions(counts, candidates)
    exists = set(wanted)
    kept: Assignment = {
        member: sorted(p for p in target.get(member, ()) if p in exists and p.topic in candidates[member].topics)
        for member in sorted(wishes)
    }
    known = {member: frozenset(t for t in c.topics if t in counts) for member, c in candidates.items()}
    if len(set(known.values())) <= 1:
        _fill_in_turn(kept, wanted)
    else:
        share_by_wish(kept, wanted, known)
    return {member: frozenset(partitions) for member, partitions in kept.items()}


def _fill_in_turn(kept: Assignment, wanted: list[TopicPartition]) -> None:
    if not kept:
        return
    least, n_larger = divmod(len(wanted), len(kept))
    # Those who have most now keep the larger quota: nothing moves just to change who is the larger.
    by_size = sorted(kept, key=lambda member: -len(kept[member]))
    quota = {member: least + (i < n_larger) for i, member in enumerate(by_size)}
    for member in kept:
        kept[member] = kept[member][: quota[member]]
    placed = {partition for partitions in kept.values() for partition in partitions}
    free = [partition for partition in wanted if partition not in placed]
    for member, partitions in kept.items():
        n_missing = quota[member] - len(partitions)
        partitions += free[:n_missing]
        free = free[n_missing:]


def by_range(
    wishes: Mapping[str, Wish], counts: Mapping[str, int], _target: Mapping[str, frozenset[TopicPartition]]
) -> Target:
    """The range rule, static members first."""
    shares = Range().assign(counts, _candidates(wishes))
    return {member: frozenset(partitions) for member, partitions in shares.items()}


def _candidates(wishes: Mapping[str, Wish]) -> dict[str, Candidate]:
    return {member: Candidate(frozenset(wish.topics), instance=wish.instance) for member, wish in wishes.items()}


SERVER_ASSIGNORS: dict[str, ServerAssignor] = {"uniform": uniform, "range": by_range}
