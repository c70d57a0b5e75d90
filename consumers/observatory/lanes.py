"""Who owned what, when: spans of ownership out of the frames.

Paper: §3.2, "Each partition ... is consumed by a single consumer within each consumer group".
"""

from __future__ import annotations

from typing import Any

from consumers.observatory.frames import Frame

NOBODY = "nobody"


def lanes(frames: list[Frame], group: str) -> dict[str, Any] | None:
    """One lane per consumer of ``group``: its partitions with from and to, and what it owns now.

    The lane ``nobody`` holds partitions that the group has an offset or once had an owner for, and none now.
    """
    open_spans: dict[tuple[str, str], dict[str, Any]] = {}
    spans: dict[str, list[dict[str, Any]]] = {}
    known: set[str] = set()
    newest: dict[str, str] = {}
    kind = ""
    for frame in frames:
        seen = frame["groups"].get(group)
        if seen is None:
            open_spans.clear()
            newest = {}
            continue
        kind = seen["kind"]
        owners = {f"{topic} {name}": owner for topic, owned in seen["owners"].items() for name, owner in owned.items()}
        known |= set(owners)
        newest = {partition: owners.get(partition, NOBODY) for partition in known}
        for partition, owner in newest.items():
            span = open_spans.get((owner, partition))
            if span is None:
                span = {"partition": partition, "from": frame["t"], "to": frame["t"]}
                spans.setdefault(owner, []).append(span)
                open_spans[(owner, partition)] = span
            span["to"] = frame["t"]
        for owner, partition in list(open_spans):
            if newest.get(partition) != owner:
                # The new owner's span begins here, so the old one ends here, too.
                open_spans.pop((owner, partition))["to"] = frame["t"]
        for member in seen["members"]:
            spans.setdefault(member, [])
    if not kind:
        return None
    now: dict[str, list[str]] = {}
    for partition, owner in sorted(newest.items()):
        now.setdefault(owner, []).append(partition)
    order = sorted(spans, key=lambda member: (member == NOBODY, member))
    return {
        "name": group,
        "kind": kind,
        "partitions": sorted(known),
        "members": [{"id": member, "spans": spans[member], "now": now.get(member, [])} for member in order],
    }
