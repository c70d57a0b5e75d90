"""The moments worth going back to: faults that were struck, rebalances, brokers that came and went.

Every change makes each member of a group rebalance, so rebalances of one group that follow each other closely are one
mark.
"""

from __future__ import annotations

from typing import Any

Mark = dict[str, Any]

MOST = 100
"""Marks of one view: more cannot be told apart on a strip."""
TOGETHER_MS = 4_000


def marks_of(frame: dict[str, Any]) -> list[Mark]:
    """What happened in one frame: ``{t, kind, says}``, a rebalance with its group."""
    found = [
        {"t": int(fault["t"]), "kind": "fault", "says": f"{fault['title']}: {fault['target']}"}
        for fault in frame.get("struck", [])
    ]
    found += [
        {"t": int(event["t"]), "kind": "rebalance", "group": rebalance["group"], "says": _rebalanced(rebalance)}
        for event in frame["events"]
        if (rebalance := event.get("rebalance")) is not None
    ]
    for path, change, _ in frame.get("changes", []):
        parts = path.strip("/").split("/")
        if parts[:2] == ["brokers", "ids"] and len(parts) == 3:
            says = f"broker {parts[2]} {'registered' if change == 'new' else 'left the registry'}"
            found.append({"t": int(frame["t"]), "kind": "broker", "says": says})
    return found


def _rebalanced(rebalance: dict[str, Any]) -> str:
    return f"{rebalance['group']} rebalanced" + (f": {rebalance['reason']}" if rebalance["reason"] else "")


def joined(before: list[Mark], new: list[Mark]) -> list[Mark]:
    """``before`` with the new marks; a rebalance soon after one of the same group belongs to it."""
    marks = list(before)
    for mark in sorted(new, key=lambda found: int(found["t"])):
        if mark["kind"] == "rebalance" and any(_continues(mark, old) for old in marks[-20:]):
            continue
        marks.append(mark)
    return marks


def _continues(mark: Mark, old: Mark) -> bool:
    near = abs(int(mark["t"]) - int(old["t"])) <= TOGETHER_MS
    return near and old["kind"] == "rebalance" and old["group"] == mark["group"]
