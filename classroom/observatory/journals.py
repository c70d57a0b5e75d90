"""What the processes tell of themselves: journals of a cluster directory, and the brokers' own.

Every consumer of a cluster directory writes one JSON line per event; a broker answers ``/events``. Both are brought
into one form for the page, and the start of a rebalance is paired with its end.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_PER_LOOK = 200
_REASON_MS = 30_000
_ROUTINE = frozenset({"committed"})
"""Events that come every second and say nothing new."""

Entry = dict[str, Any]


class Journals:
    """New events since the last look. Thread: one."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self._began: dict[tuple[str, str], tuple[int, str, set[str]]] = {}
        self._owned: dict[str, set[str]] = {}
        self._changes: deque[tuple[int, str, str, str]] = deque(maxlen=100)
        self.names: dict[str, str] = {}
        """Consumer id -> name of the process, as far as known."""

    def read(self) -> list[Entry]:
        """The events written to files since the last call, ready for the page."""
        paths = sorted(self._directory.glob("*.jsonl")) if self._directory else []
        entries = {path.stem: self._new_lines(path) for path in paths}
        for source, told in entries.items():
            self.names |= {entry["consumer"]: source for entry in told if isinstance(entry.get("consumer"), str)}
        return [event for source, told in entries.items() for event in self.shown(source, told)]

    def _new_lines(self, path: Path) -> list[Entry]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            data = file.read(1_000_000)
        whole = data.rfind(b"\n") + 1
        self._read[path] = self._read.get(path, 0) + whole
        found = []
        for line in data[:whole].splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line cut short by a kill
            if isinstance(entry, dict):
                found.append(entry)
        return found

    def shown(self, source: str, entries: Iterable[Entry]) -> list[Entry]:
        """Events of one process as the page shows them; what every second brings is left out."""
        found = []
        for entry in entries:
            try:
                if entry["event"] not in _ROUTINE:
                    found.append(self._shown(source, entry))
            except (KeyError, TypeError):
                continue  # not an event of ours
        return found

    def registry_changed(self, t: int, changes: Iterable[list[Any]]) -> None:
        """Remember who came and who went: the reasons of the rebalances that follow."""
        for path, what, _ in changes:
            match path.strip("/").split("/"):
                case ["consumers", group, "ids", member]:
                    self._changes.append((t, group, member, _CAME[what]))
                case ["brokers", "ids", number]:
                    self._changes.append((t, "", f"broker {number}", _CAME[what]))
                case ["brokers", "topics", topic]:
                    self._changes.append((t, "", f"topic {topic}", _CAME[what]))

    def _shown(self, source: str, entry: Entry) -> Entry:
        words = {k: v for k, v in entry.items() if k not in ("n", "t", "event", "section") and v is not None}
        text = f"{entry['event'].replace('_', ' ')}: " + ", ".join(f"{k} {_said(v)}" for k, v in words.items())
        event = {"t": int(entry["t"]), "source": source, "event": entry["event"], "text": text[:300]}
        rebalance = self._rebalance(source, entry) or self._modern_rebalance(entry)
        return event | {"rebalance": rebalance} if rebalance else event

    def _rebalance(self, source: str, entry: Entry) -> Entry | None:
        """A consumer's rebalance of Algorithm 1: how long it took and how many partitions moved."""
        if entry["event"] == "rebalance_started":
            before = self._owned.get(entry["consumer"], set())
            self._began.setdefault((source, entry["consumer"]), (entry["t"], "", before))
        if entry["event"] != "rebalance_done":
            return None
        began, _, before = self._began.pop((source, entry["consumer"]), (entry["t"], "", set()))
        owned = self._owned[entry["consumer"]] = set(entry.get("owned", ()))
        return {
            "group": entry["group"],
            "kind": "algorithm1",
            "consumer": source,
            "reason": self._named(entry.get("reason", "")) or self._reason(entry["group"], began),
            "seconds": (entry["t"] - began) / 1000,
            "moved": len(owned ^ before),
            "outcome": f"owns {len(owned)} after {entry.get('attempts', 1)} attempt(s)",
        }

    def _modern_rebalance(self, entry: Entry) -> Entry | None:
        """A modern group's rebalance: from the first state that is not stable to the next that is."""
        if entry["event"] != "group_state_changed":
            return None
        key = ("coordinator", entry["group"])
        if entry["after"] not in ("Stable", "Empty", "Dead"):
            self._began.setdefault(key, (entry["t"], str(entry.get("reason") or ""), set()))
            return None
        began, reason, _ = self._began.pop(key, (entry["t"], str(entry.get("reason") or ""), set()))
        return {
            "group": entry["group"],
            "kind": "modern",
            "consumer": "the coordinator",
            "reason": reason,
            "seconds": (entry["t"] - began) / 1000,
            "moved": None,
            "outcome": f"{entry['after']}, generation {entry['generation']}, {entry['n_members']} member(s)",
        }

    def _named(self, reason: str) -> str:
        """A reason as the consumer gave it, with the names of processes instead of consumer ids."""
        return re.sub(r"[\w.-]+", lambda word: self.names.get(word[0], word[0]), reason)

    def _reason(self, group: str, began: int) -> str:
        """Who came or went in this group, or which broker, about when the rebalance began."""
        near = [(abs(t - began), who, what) for t, where, who, what in self._changes if where in ("", group)]
        distance, who, what = min(near, default=(_REASON_MS, "", ""))
        return f"{self.names.get(who, who)} {what}" if distance < _REASON_MS else ""


def _said(value: Any) -> str:
    """A field's value as people write it."""
    if isinstance(value, list):
        return " ".join(map(_said, value)) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={_said(inner)}" for key, inner in value.items()) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


_CAME = {"new": "came", "gone": "went"}
