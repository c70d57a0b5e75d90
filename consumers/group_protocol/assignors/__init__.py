"""Assignors: who gets which partition, as pure functions found by name.

See docs/group-protocol.md. Register one's own with ``register``; a member then offers it by name.
"""

from __future__ import annotations

from consumers.group_protocol.assignors.candidate import Assignment, Assignor, Candidate
from consumers.group_protocol.assignors.cooperative import CooperativeSticky
from consumers.group_protocol.assignors.even import Range, RoundRobin
from consumers.group_protocol.assignors.sticky import Sticky

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Candidate", "assignor", "register"]

ASSIGNORS: dict[str, Assignor] = {}


def register(assignor: Assignor) -> None:
    """Make an assignor known under its own name; a later one of that name takes its place."""
    ASSIGNORS[assignor.name] = assignor


def assignor(name: str) -> Assignor:
    """Find an assignor; ValueError names those there are."""
    try:
        return ASSIGNORS[name]
    except KeyError:
        raise ValueError(f"no assignor {name!r}; there are {', '.join(sorted(ASSIGNORS))}") from None


for _each in (Range(), RoundRobin(), Sticky(), CooperativeSticky()):
    register(_each)
