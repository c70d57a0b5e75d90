"""The last loads, from the reports they write.

Paper: §4.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHOWN = 12
WINDOWS = 100
"""Windows of a load that do not add up, shown by name."""
Report = dict[str, Any]


class Loads:
    """The newest reports in a directory. A report is read once. Thread: one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[tuple[Path, int], Report] = {}

    def read(self) -> list[Report]:
        """Newest first; a half-written report is passed over until it is whole."""
        stamped = sorted(((path.stat().st_mtime_ns, path) for path in self._directory.glob("*.json")), reverse=True)
        found = []
        for stamp, path in stamped[:SHOWN]:
            if (path, stamp) not in self._read:
                try:
                    self._read[path, stamp] = _shown(json.loads(path.read_text()))
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
            found.append(self._read[path, stamp])
        return found


def _shown(report: Report) -> Report:
    """The lines of a report that the page has room for."""
    verdicts = report["audit"]["verdicts"]
    return {
        "load": report["load"],
        "t": report["created_ms"],
        "state": report["state"],
        "error": report["error"],
        "rows": report["rows"],
        "dead": report["dead"],
        "bytes": report["bytes"],
        "seconds": report["seconds"],
        "audit": {name: n for name, n in verdicts.items() if n},
        "windows": [
            {key: window[key] for key in ("topic", "start_ms", "window_ms", "sent", "loaded", "verdict", "why")}
            for window in report["audit"].get("windows", [])
            if window["verdict"] != "complete"
        ][:WINDOWS],
        "ranges": [
            {"topic": topic["topic"], "partition": part["partition"], "from": part["from"], "to": part["to"]}
            for topic in report["topics"]
            for part in topic["partitions"]
        ],
        "topics": [{key: topic[key] for key in ("topic", "rows", "dead", "bytes")} for topic in report["topics"]],
    }
