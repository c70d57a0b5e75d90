"""Who owned what, when: spans of ownership out of the frames.

Paper: §3.2, "Each partition ... is consumed by a single consumer within each consumer group".
"""

from __future__ import annotations

from typing import Any

from classroom.observatory.frames import Frame, broker_is_gone
from classroom.observatory.readers import BROKER_GONE, called

NOBODY = "nobody"
MOST_PARTITIONS = 200

Holder = tuple[str, str]
"""The owner of a partition, and why it does not read it: "" if it does."""


def lanes(frames: list[Frame], group: str) -> dict[str, Any] | None:
    """One lane per consumer of ``group``: its partitions with from and to, and what it owns now.

    The lane ``nobody`` holds partitions that once had an owner, and none now. A span whose ``state`` is not empty was
    owned and not read: the owner was dead, paused or stuck, or the partition's broker was gone.
    """
    spans: dict[str, list[dict[str, Any]]] = {}
    open_spans: dict[str, tuple[Holder, dict[str, Any]]] = {}
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
        now_seen = (seen["owners"], frame.get("not_reading", {}), _gone(frame))
        if now_seen != before:
            before = now_seen
            _change(open_spans, spans, *now_seen, t)
    if not kind:
        return None
    now: dict[str, list[str]] = {}
    states: dict[str, str] = {}
    for partition, ((owner, state), span) in sorted(open_spans.items(), key=lambda item: _order(item[0])):
        span["to"] = t
        now.setdefault(owner, []).append(partition)
        if state and state != BROKER_GONE:
            states[owner] = state
    known = sorted({span["partition"] for found in spans.values() for span in found}, key=_order)
    shown = set(known[:MOST_PARTITIONS])
    # Under one name the earlier life first.
    order = sorted(spans, key=lambda m: (m == NOBODY, called(m, names), spans[m][0]["from"] if spans[m] else t, m))
    return {
        "name": group,
        "kind": kind,
        "partitions": known[:MOST_PARTITIONS],
        "n_partitions": len(known),
        "members": [
            {
                "id": member,
                "name": called(member, names),
                "state": states.get(member, ""),
                "here": member in members or member == NOBODY,
                "spans": [span for span in spans[member] if span["partition"] in shown],
                "now": now.get(member, []),
            }
            for member in order
        ],
    }


def _gone(frame: Frame) -> frozenset[str]:
    return frozenset(number for number in frame["brokers"] if broker_is_gone(frame, number))


def _change(
    open_spans: dict[str, tuple[Holder, dict[str, Any]]],
    spans: dict[str, list[dict[str, Any]]],
    owners: dict[str, dict[str, str]],
    not_reading: dict[str, str],
    gone: frozenset[str],
    t: int,
) -> None:
    """End and begin spans where the holder of a partition, or what keeps it from reading, is another at ``t``."""
    held: dict[str, Holder] = {}
    for topic, owned in owners.items():
        for name, owner in owned.items():
            away = BROKER_GONE if name.partition("-")[0] in gone else ""
            held[f"{topic} {name}"] = (owner, not_reading.get(owner) or away)
    for partition in open_spans.keys() | held.keys():
        holder = held.get(partition, (NOBODY, ""))
        if partition in open_spans:
            was, span = open_spans[partition]
            if was == holder:
                continue
            # The next span begins here, so the one before ends here, too.
            span["to"] = t
        owner, state = holder
        span = {"partition": partition, "from": t, "to": t, "state": state}
        spans.setdefault(owner, []).append(span)
        open_spans[partition] = (holder, span)


def _order(partition: str) -> tuple[str, tuple[int, ...]]:
    topic, _, name = partition.rpartition(" ")
    return topic, tuple(int(part) for part in name.split("-"))
