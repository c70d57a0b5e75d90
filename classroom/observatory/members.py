"""Members of a broker with standbys, as the page's faults find them (docs/since-2011.md)."""

from __future__ import annotations

from classroom.cluster.processes import Process

OF_MEMBERS = ("kill-leader", "delete-disk", "cut-link")
"""The faults of such a broker."""


def member_of(process: Process) -> str | None:
    """Which member of its broker a process is; None if its broker has no standbys."""
    for argument in process.arguments:
        if argument.startswith("standby.member="):
            return argument.partition("=")[2]
    return None
