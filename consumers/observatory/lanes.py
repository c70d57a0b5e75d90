"""Who owned what, when: spans of ownership out of the frames.

Paper: §3.2, "Each partition ... is consumed by a single consumer within each consumer group".
"""

from __future__ import annotations

import re
from typing import Any

from consumers.observatory.frames import Frame

NOBODY = "nobody"
MOST_PARTITIONS = 200
_UNIQUE = re.compile(r"-[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$")
"""What a coordinator appends to a client's name to make a member id."""


def lanes(frames: list[Frame], group: str) -> dict[str, Any] | None:
    """One lane per consumer of ``group``: its partitions with from and to, and what it owns now.

    The lane ``nobody`` holds partitions that once had an owner, and none now.
    """
    spans: dict[str, list[dict[str, Any]]] = {}
    open_spans: dict[str, tuple[str, dict[str, Any]]] = {}
    before: Any = None
    members: list[str] = []
    names: dict[str, str] = {}
    kind, t = "", 0
    for frame in frames:
        t = int(frame["t"])
        seen = frame["groups"].get(group)
        if seen is None:
            for _, span in open_spans.values():
                span["to"] = t
            open_spans, before, members = {}, None, []
            continue
        kind, members = seen["kind"], seen["members"]
        names |= frame.get("names", {})
        for member in members:
            spans.setdefault(member, [])
        # Most frames are as the one before: only a change costs anything.
        if seen["owners"] is not before and seen["owners"] != before:
            before = seen["owners"]
            _change(open_spans, spans, before, t)
    if not kind:
        return None
    now: dict[str, list[str]] = {}
    for partition, (owner, span) in sorted(open_spans.items()):
        span["to"] = t
        now.setdefault(owner, []).append(partition)
    known = sorted({span["partition"] for found in spans.values() for span in found}, key=_order)
    shown = set(known[:MOST_PARTITIONS])
    called = {member: names.get(member) or _UNIQUE.sub("", member) for member in spans}
    # Under one name the earlier life first.
    order = sorted(spans, key=lambda m: (m == NOBODY, called[m], spans[m][0]["from"] if spans[m] else t, m))
    return {
        "name": group,
        "kind": kind,
        "partitions": known[:MOST_PARTITIONS],
        "n_partitions": len(known),
        "members": [
            {
                "id": member,
                "name": called[member],
                "here": member in members or member == NOBODY,
                "spans": [span for span in spans[member] if span["partition"] in shown],
                "now": now.get(member, []),
            }
            for member in order
        ],
    }


def _change(
    open_spans: dict[str, tuple[str, dict[str, Any]]],
    spans: dict[str, list[dict[str, Any]]],
    owners: dict[str, dict[str, str]],
    t: int,
) -> None:
    """End and begin spans where the owner of a partition is another one at ``t``."""
    owned = {f"{topic} {name}": owner for topic, held in owners.items() for name, owner in held.items()}
    for partition in open_spans.keys() | owned.keys():
        owner = owned.get(partition, NOBODY)
        if partition in open_spans:
            was, span = open_spans[partition]
            if was == owner:
                continue
            # The new owner's span begins here, so the old one ends here, too.
            span["to"] = t
        span = {"partition": partition, "from": t, "to": t}
        spans.setdefault(owner, []).append(span)
        open_spans[partition] = (owner, span)


def _order(partition: str) -> tuple[str, tuple[int, ...]]:
    topic, _, name = partition.rpartition(" ")
    return topic, tuple(int(part) for part in name.split("-"))
