"""Sticky: as even as subscriptions allow, and within that, keep what was owned.

See docs/group-protocol.md. Equal subscriptions have quotas; unequal ones are balanced
along shortest chains of moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from consumers.group_protocol.assignors.candidate import (
    Assignment,
    Candidate,
    believed_owners,
    wanted_partitions,
)
from kafka2011.types import TopicPartition


class Sticky:
    """The eager one: previous ownership travels in the user data."""

    name = "sticky"
    is_cooperative = False

    def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
        kept: Assignment = {member: [] for member in sorted(candidates)}
        for partition, member in believed_owners(counts, candidates).items():
            kept[member].append(partition)
        wanted = wanted_partitions(counts, candidates)
        known = {member: frozenset(t for t in c.topics if t in counts) for member, c in candidates.items()}
        if len(set(known.values())) <= 1:
            share_equally(kept, wanted)
        else:
            share_by_wish(kept, wanted, known)
        return {member: sorted(partitions) for member, partitions in kept.items()}


def share_equally(kept: Assignment, wanted: Sequence[TopicPartition]) -> None:
    """Everyone wants everything: cut to the quota, then deal out what is free."""
    if not kept:
        return
    least, n_larger = divmod(len(wanted), len(kept))
    quota_left = n_larger
    for member, partitions in kept.items():
        partitions.sort(key=lambda p: (p.partition, p.topic))
        limit = least
        if len(partitions) > least and quota_left:
            limit, quota_left = least + 1, quota_left - 1
        kept[member] = partitions[:limit]
    placed = {partition for partitions in kept.values() for partition in partitions}
    free = deque(partition for partition in wanted if partition not in placed)
    for size in (least, least + 1):
        under = deque(member for member, partitions in kept.items() if len(partitions) < size)
        while free and under:
            member = under.popleft()
            kept[member].append(free.popleft())
            if len(kept[member]) < size:
                under.append(member)


def share_by_wish(kept: Assignment, wanted: Sequence[TopicPartition], wishes: Mapping[str, frozenset[str]]) -> None:
    """Wishes differ: give each free partition to the least loaded, then even out."""
    consumers: dict[str, list[str]] = {}
    for member in sorted(kept):
        for topic in wishes[member]:
            consumers.setdefault(topic, []).append(member)
    placed = {partition for partitions in kept.values() for partition in partitions}
    free = [partition for partition in wanted if partition not in placed]
    for partition in sorted(free, key=lambda p: (len(consumers[p.topic]), p)):
        receiver = min(consumers[partition.topic], key=lambda m: (len(kept[m]), m))
        kept[receiver].append(partition)
    # The fullest first: once nobody can pass anything on to someone holding two fewer, it is as even as it can be.
    settled = False
    while not settled:
        settled = True
        for member in sorted(kept, key=lambda m: (-len(kept[m]), m)):
            chain = _chain_to_emptier(member, kept, consumers)
            if chain:
                for giver, partition, receiver in chain:
                    kept[giver].remove(partition)
                    kept[receiver].append(partition)
                settled = False
                break


_Move = tuple[str, TopicPartition, str]


def _chain_to_emptier(start: str, kept: Assignment, consumers: Mapping[str, Sequence[str]]) -> list[_Move]:
    """The shortest chain of moves from ``start`` to someone with at least two fewer; empty when there is none."""
    goal = len(kept[start]) - 2
    reached: dict[str, _Move | None] = {start: None}
    queue = deque([start])
    while queue:
        giver = queue.popleft()
        by_topic = {partition.topic: partition for partition in sorted(kept[giver])}
        for topic, partition in by_topic.items():
            for receiver in sorted(consumers[topic], key=lambda m: (len(kept[m]), m)):
                if receiver in reached:
                    continue
                reached[receiver] = (giver, partition, receiver)
                if len(kept[receiver]) <= goal:
                    return _walk_back(receiver, reached)
                queue.append(receiver)
    return []


def _walk_back(end: str, reached: Mapping[str, _Move | None]) -> list[_Move]:
    chain = []
    move = reached[end]
    while move is not None:
        chain.append(move)
        move = reached[move[0]]
    return chain
