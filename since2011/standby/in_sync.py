"""The in-sync set of a logical broker as it stands in ZooKeeper, and who may run for leadership by it. No I/O.

The node names each member with the id of its disk. A member whose disk was replaced has another id: it has lost what it
is listed for, and may not lead until it has copied everything and been let in again.

    {"version": 1, "in_sync": {"a": "5f0c…", "b": "91d2…"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from kafka2011.errors import Kafka2011Error
from since2011.controller.elections import offline

MEMBERS = ("a", "b", "c")


class NotAnInSyncSet(Kafka2011Error):
    """The node holds something else: nobody may lead until somebody has looked at it."""


class InSync(NamedTuple):
    """Who has everything, on which disk; ``version`` is that of the node."""

    disks: Mapping[str, str]
    version: int = -1

    def encode(self) -> bytes:
        """The node's text."""
        return json.dumps({"version": 1, "in_sync": dict(sorted(self.disks.items()))}).encode()


def decode(text: bytes, version: int) -> InSync:
    """Read the node."""
    try:
        disks = json.loads(text)["in_sync"]
        if not disks or not all(name in MEMBERS and isinstance(disk, str) for name, disk in disks.items()):
            raise ValueError("no members")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotAnInSyncSet(f"{text[:200]!r} names no members in sync ({error})") from error
    return InSync(disks, version)


def may_lead(node: InSync | None, me: str, disk: str, alive: Mapping[str, str], *, whole: bool = True) -> InSync | None:
    """The set to store with the election if this member may run: those in sync that live. None if it may not.

    ``alive`` are the members that are there, with their disks. The first member there ever was leads without being
    asked. One that misses files of its own leaves it to another in sync, if there is one.
    """
    if node is None:
        return InSync({me: disk})
    present = {MEMBERS.index(name) for name, its in alive.items() if node.disks.get(name) == its} | {MEMBERS.index(me)}
    listed = [MEMBERS.index(name) for name, its in node.disks.items() if name != me or its == disk]
    mine = MEMBERS.index(me)
    assignment = (mine, *(number for number in range(len(MEMBERS)) if number != mine))
    elected = offline(assignment, listed, present)
    if elected is None or elected.leader != mine or (not whole and len(elected.isr) > 1):
        return None
    return InSync({MEMBERS[number]: node.disks[MEMBERS[number]] for number in elected.isr}, node.version)
