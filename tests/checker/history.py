"""A history: what every process of a run did, one JSON object a line, merged by time.

    {"t":8123,"proc":"p1","type":"ok","f":"send","key":"orders/0-1","v":[[40960,41031,"p1-000042"]]}
    {"t":8124,"proc":"c5#2","type":"ok","f":"poll","key":"orders/0-1","v":[[40960,41031,"p1-000042"]]}
    {"t":8125,"proc":"c5#2","type":"ok","f":"commit","key":"orders/0-1","off":41031}
    {"t":8126,"proc":"c5#2","type":"ok","f":"own","key":"orders/0-1"}                 also: release, done, out_of_range
    {"t":8127,"proc":"nemesis","type":"info","f":"fault","name":"kill","target":"c5","phase":"start"}

``v`` holds [offset, next offset, value] of each message; values are unique in a run. ``done`` says the application
finished a message. ``t`` is the machine's monotonic clock in ns, the same for all processes. A line is written with
one ``os.write``, so a killed process loses at most its last.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Op = dict[str, Any]


class HistoryFile:
    """Where one process writes what it does."""

    def __init__(self, path: Path, proc: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._proc = proc

    def write(self, f: str, kind: str = "ok", **fields: object) -> None:
        op = {"t": time.monotonic_ns(), "proc": self._proc, "type": kind, "f": f} | fields
        os.write(self._fd, json.dumps(op).encode() + b"\n")


def read_histories(paths: Iterable[Path]) -> list[Op]:
    """All operations of all processes in the order of time; a last line cut off by a kill is dropped."""
    ops: list[Op] = []
    for path in paths:
        for line in path.read_bytes().split(b"\n"):
            try:
                ops.append(json.loads(line))
            except ValueError:
                continue
    return sorted(ops, key=lambda op: op["t"])
