"""Which members of a group are registered but do not read, and why.

ZooKeeper and a coordinator believe in a consumer until its session ends. The page knows sooner: the process is gone
or stands still, or what is there to read is not read. So the picture shows the outage from its first second.

Paper: §3.2, the ephemeral nodes of a consumer live as long as its session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from classroom.cluster.processes import ClusterError, Process, Processes

DEAD = "dead"
PAUSED = "paused"
STUCK = "stuck"
BROKER_GONE = "broker gone"

STUCK_MS = 15_000
"""Longer than the interval of auto-commit (ten seconds unless set): a place that was read would have moved."""

_UNIQUE = re.compile(r"-[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$")
"""What a coordinator appends to a client's name to make a member id."""

Groups = Mapping[str, Mapping[str, Any]]
Ends = Mapping[str, Mapping[str, int]]


def called(member: str, names: Mapping[str, str]) -> str:
    """The name of a member's process, or of its client; its id, if it has none."""
    return names.get(member) or _UNIQUE.sub("", member)


class Readers:
    """Look after the members from look to look. Thread: one."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._lives: dict[str, tuple[int, int | None]] = {}
        """Member -> pid and start of the process it was first seen in: a second life has another id."""
        self._moved: dict[tuple[str, str], tuple[Any, int]] = {}
        """Group and member -> its stored offsets, and when they last moved or nothing was left to read."""

    def not_reading(self, t: int, groups: Groups, ends: Ends, names: Mapping[str, str]) -> dict[str, str]:
        """Member -> dead, paused or stuck. Who reads, or of whom nothing is known, is not in it.

        ``ends``: topic -> partition -> where its readable bytes end now, of the partitions that can be read.
        """
        processes = self._processes()
        found: dict[str, str] = {}
        for name, group in groups.items():
            for member in group["members"]:
                state = self._of_process(member, processes.get(called(member, names)))
                state = state or self._of_progress(t, name, member, group, ends)
                if state:
                    found[member] = state
        self._forget(groups)
        return found

    def _processes(self) -> dict[str, Process]:
        if self._directory is None:
            return {}
        try:
            return Processes(self._directory).all
        except (ClusterError, OSError):
            return {}  # somebody repairs the file; what the registry says is still shown

    def _of_process(self, member: str, process: Process | None) -> str | None:
        if process is None:
            return None
        life = self._lives.setdefault(member, (process.pid, process.started))
        if life != (process.pid, process.started) or not process.running:
            return DEAD
        return PAUSED if process.paused else None

    def _of_progress(self, t: int, name: str, member: str, group: Mapping[str, Any], ends: Ends) -> str | None:
        """Stuck: of all it owns and could read, nothing was stored for a long time."""
        offsets = {
            (topic, partition): group["offsets"].get(topic, {}).get(partition)
            for topic, owned in group["owners"].items()
            for partition, owner in owned.items()
            if owner == member
        }
        waiting = any(
            offset is not None and offset < ends.get(topic, {}).get(partition, 0)
            for (topic, partition), offset in offsets.items()
        )
        before, since = self._moved.get((name, member), (None, t))
        if offsets != before or not waiting:
            since = t
        self._moved[name, member] = (offsets, since)
        return STUCK if t - since > STUCK_MS else None

    def _forget(self, groups: Groups) -> None:
        """Let go of members that are registered nowhere."""
        here = {(name, member) for name, group in groups.items() for member in group["members"]}
        members = {member for _, member in here}
        self._moved = {key: moved for key, moved in self._moved.items() if key in here}
        self._lives = {member: life for member, life in self._lives.items() if member in members}
