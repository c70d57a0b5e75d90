"""What is compared: each cell is one run against one broker, with the same work for both."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.beside07 import clients
from benchmarks.beside07.brokers import Side
from kafka2011.child import die_with_parent

Run = Callable[[Side, str, int], dict[str, float]]
"""Run a cell against a side; given the ZooKeeper and the number of the run."""


@dataclass(frozen=True)
class Cell:
    """One line of the table. ``goal`` is the least ratio ours / 0.7 that issue 23 asks for, None where it asks none."""

    name: str
    ours: Run
    real: Run
    goal: float | None = None


def worker(module: str, *words: object) -> dict[str, float]:
    """A driver in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.beside07.{module}", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=Path(__file__).parents[2],
        preexec_fn=die_with_parent,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {words}: {done.stderr.strip()[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def raw(*words: object) -> Run:
    """A cell that runs the same raw driver against both; ``TOPIC`` is made new for each run."""

    def run(side: Side, zookeeper: str, number: int) -> dict[str, float]:
        named = [word.replace("NEW", f"t{number}") if isinstance(word, str) else word for word in words]
        return worker("raw", named[0], side.port, *named[1:])

    return run


def both(name: str, run: Run, goal: float | None) -> Cell:
    """The same run on both sides."""
    return Cell(name, run, run, goal)


def own(tool: str, topic: str, n: int, codec: str = "none") -> Run:
    """0.7's own client."""

    def run(side: Side, zookeeper: str, number: int) -> dict[str, float]:
        return clients.real(tool, side.port, zookeeper, topic.replace("NEW", f"o{number}"), n, codec)

    return run


def ours(what: str, *words: object) -> Run:
    """Our own client; a group is told the ZooKeeper, the others the port."""

    def run(side: Side, zookeeper: str, number: int) -> dict[str, float]:
        named = [word.replace("NEW", f"o{number}") if isinstance(word, str) else word for word in words]
        return worker("clients", what, zookeeper if what == "group" else side.port, *named)

    return run


STORED = {"equal": ("equal", 200), "lognormal": ("lognormal", 200), "gz": ("equal", 200), "k1": ("equal", 1000)}
"""Topics that are filled once and read by many cells: kind and size of their payloads."""


def fill(side: Side, n: int) -> None:
    """Fill the topics that are read."""
    for topic, (kind, size) in STORED.items():
        worker("raw", "fill", side.port, topic, kind, size, n * 200 // size, "gzip" if topic == "gz" else "none")


def cells(n: int) -> list[Cell]:
    """The table of issue 23; ``n`` messages in most of them."""
    read = 2 * n
    found = [
        both(f"raw produce, sets of 50, {kind}", raw("produce", "NEW", kind, 200, 50, n, 1, 1), goal)
        for kind, goal in (("equal", None), ("lognormal", 1.5))
    ]
    found += [
        both(f"raw produce, {k} connections", raw("produce", "NEW", "equal", 200, 50, n, k, 1), None) for k in (10, 100)
    ]
    found += [
        both(f"raw produce, {k} partitions", raw("produce", f"p{k}", "equal", 200, 50, n, 1, k), goal)
        for k, goal in ((10, None), (100, 1.0), (1000, 1.0))
    ]
    found += [
        both(f"raw fetches of 300 KB, {k} readers", raw("fetch", "equal", 210, 300 << 10, n * 1000, k), 1.0)
        for k in (1, 10, 100)
    ]
    found += [
        both("raw fetches, 1 KB messages", raw("fetch", "k1", 1010, 300 << 10, n * 1000, 1), 1.0),
        Cell("produce, own clients", ours("produce", "NEW", "equal", n, "none"), own("produce", "NEW", n // 2), None),
        Cell(
            "produce, own clients, lognormal (0.7: equal)",
            ours("produce", "NEW", "lognormal", n, "none"),
            own("produce", "NEW", n // 2),
            1.5,
        ),
        Cell("produce gzip, own clients", ours("produce", "NEW", "equal", n // 4, "gzip"),
             own("produce", "NEW", n // 4, "gzip"), 1.0),
        Cell("consume gzip, own clients", ours("consume", "gz", read), own("consume", "gz", read), 1.0),
    ]
    for kind in ("equal", "lognormal"):
        found += [
            Cell(f"consume by offset, {kind}", ours("consume", kind, read), own("consume", kind, read), 1.0),
            Cell(f"consume in a group, {kind}", ours("group", kind, read, "messages"), own("group", kind, read), 1.0),
            Cell(f"consume in chunks, {kind}", ours("group", kind, read, "chunks"), own("group", kind, read), 2.0),
            Cell(f"consume in views, {kind}", ours("group", kind, read, "views"), own("group", kind, read), None),
        ]
    return found
