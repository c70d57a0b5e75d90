"""Cooperative sticky: the sticky balance, reached without anyone stopping what it keeps.

See docs/group-protocol.md step 4 (KIP-429).
"""

from __future__ import annotations

from collections.abc import Mapping

from consumers.group_protocol.assignors.candidate import Assignment, Candidate, believed_owners
from consumers.group_protocol.assignors.sticky import Sticky


class CooperativeSticky:
    """A partition that would move from someone present is withheld until its owner has let it go."""

    name = "cooperative-sticky"
    is_cooperative = True

    def assign(self, counts: Mapping[str, int], candidates: Mapping[str, Candidate]) -> Assignment:
        balanced = Sticky().assign(counts, candidates)
        owner = believed_owners(counts, candidates)
        claimed = {partition for candidate in candidates.values() for partition in candidate.owned}
        return {
            member: [p for p in partitions if p not in claimed or owner.get(p) == member]
            for member, partitions in balanced.items()
        }
