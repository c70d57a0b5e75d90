"""What an assignor is given and must return.

See docs/group-protocol.md. ``counts`` holds the partitions of each topic the leader knows; topics missing in
it are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from consumers.group_protocol.subscription import NO_GENERATION
from kafka2011.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""Partitions by member id; every candidate has an entry."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member as an assignor sees it."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    instance: str | None = None


class Assignor(Protocol):
    """A rule for sharing out partitions."""

    @property
    def name(self) -> str:
        """The name members vote for."""

    @property
    def is_cooperative(self) -> bool:
        """Members keep what they own while they join, and may be told to give up only part of it (KIP-429)."""

    def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
        """Share out every partition of every known topic that someone wants."""


def in_order(candidates: Mapping[str, Candidate]) -> list[str]:
    """Static members by instance id, then the others by member id."""
    return sorted(candidates, key=lambda m: (candidates[m].instance is None, candidates[m].instance or m))


def wanted_partitions(counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> list[TopicPartition]:
    """Every partition someone wants, by topic and number."""
    topics = sorted({topic for c in candidates.values() for topic in c.topics if topic in counts})
    return [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]


def believed_owners(counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> dict[TopicPartition, str]:
    """Who owned what: of two claims the higher generation is believed, of equal ones neither (§8)."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member, candidate in candidates.items():
        for partition in set(candidate.owned):
            if partition.topic in candidate.topics and 0 <= partition.partition < counts.get(partition.topic, 0):
                claims.setdefault(partition, []).append((candidate.generation, member))
    believed = {}
    for partition, claimants in claims.items():
        newest = max(generation for generation, _ in claimants)
        holders = [member for generation, member in claimants if generation == newest]
        if len(holders) == 1:
            believed[partition] = holders[0]
    return believed
