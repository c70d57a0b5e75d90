"""Range and round robin: assignors without a memory.

See docs/group-protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from consumers.group_protocol.assignors.candidate import Assignment, Candidate, in_order, wanted_partitions
from kafka2011.types import TopicPartition


class Range:
    """Each topic by itself in runs of neighbours: the rule 0.7 shipped, remainder to the first."""

    name = "range"
    is_cooperative = False

    def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
        assignment: Assignment = {member: [] for member in candidates}
        order = in_order(candidates)
        for topic in sorted({topic for c in candidates.values() for topic in c.topics if topic in counts}):
            subscribers = [member for member in order if topic in candidates[member].topics]
            share, remainder = divmod(counts[topic], len(subscribers))
            for i, member in enumerate(subscribers):
                start = share * i + min(i, remainder)
                stop = start + share + (i < remainder)
                assignment[member] += [TopicPartition(topic, number) for number in range(start, stop)]
        return assignment


class RoundRobin:
    """All partitions of all topics dealt out in turn, passing over who does not want them."""

    name = "roundrobin"
    is_cooperative = False

    def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
        assignment: Assignment = {member: [] for member in candidates}
        order = in_order(candidates)
        turn = 0
        for partition in wanted_partitions(counts, candidates):
            while partition.topic not in candidates[order[turn % len(order)]].topics:
                turn += 1
            assignment[order[turn % len(order)]].append(partition)
            turn += 1
        return assignment
