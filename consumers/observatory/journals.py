"""Follow the journals that the processes of a cluster directory write, one JSON line per event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafka2011.clock import SYSTEM_CLOCK

_MOST_PER_LOOK = 200


class Journals:
    """New lines of every ``*.jsonl`` in a directory since the last look. Thread: one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self._began: dict[tuple[str, str], tuple[int, str, set[str]]] = {}
        self._owned: dict[str, set[str]] = {}

    def read(self) -> list[dict[str, Any]]:
        """The events written since the last call, oldest first, ready for the page."""
        found = []
        for path in sorted(self._directory.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read(1_000_000)
            whole = data.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            for line in data[:whole].splitlines():
                try:
                    found.append(self._shown(path.stem, json.loads(line)))
                except (ValueError, KeyError, TypeError):
                    continue  # a line cut short by a kill
        return sorted(found, key=lambda event: int(event["t"]))[-_MOST_PER_LOOK:]

    def _shown(self, source: str, entry: dict[str, Any]) -> dict[str, Any]:
        words = {k: v for k, v in entry.items() if k not in ("n", "t", "event", "section") and v is not None}
        event = {
            "t": int(entry.get("t", SYSTEM_CLOCK.wall_ms())),
            "source": source,
            "event": entry["event"],
            "text": f"{entry['event']} " + " ".join(f"{k}={v}" for k, v in words.items())[:300],
        }
        rebalance = self._rebalance(source, entry)
        return event | {"rebalance": rebalance} if rebalance else event

    def _rebalance(self, source: str, entry: dict[str, Any]) -> dict[str, Any] | None:
        """Pair the start of a rebalance with its end: how long it took and how many partitions moved."""
        if entry["event"] == "rebalance_started":
            reason = str(entry.get("reason") or "the registries changed")
            self._began.setdefault((source, entry["consumer"]), (entry["t"], reason, self._owned.get(source, set())))
            return None
        if entry["event"] != "rebalance_done":
            return None
        began, reason, before = self._began.pop((source, entry["consumer"]), (entry["t"], "started", set()))
        owned = set(entry.get("owned", ()))
        self._owned[source] = owned
        return {
            "group": entry["group"],
            "consumer": entry["consumer"],
            "reason": reason,
            "seconds": (entry["t"] - began) / 1000,
            "moved": len(owned ^ before),
            "outcome": f"owns {len(owned)} after {entry.get('attempts', 1)} attempt(s)",
        }
