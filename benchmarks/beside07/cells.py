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
"""Run a cell against a side; given the ZooKeeper and the number of the round."""
SETTLED = 10
"""0.7's clients read this many times as much: the first seconds of a virtual machine do not count."""


@dataclass(frozen=True)
class Cell:
    """One line of the table.

    ``goal`` is the least ratio ours / 0.7 that is asked for, ``cpu_goal`` whether the broker may use no more CPU than
    0.7's. Cells with the same ``real`` share what it gave in a round.
    """

    name: str
    ours: Run
    real: Run
    goal: float | None = None
    cpu_goal: bool = False


def worker(module: str, *words: object) -> dict[str, float]:
    """A driver in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.beside07.{module}", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=Path(__file__).parents[2],
        preexec_fn=die_with_parent,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {words}: {done.stderr.strip()[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def raw(*words: object) -> Run:
    """A cell that runs the same raw driver against both; a topic ``NEW`` is made new for each round."""

    def run(side: Side, zookeeper: str, number: int) -> dict[str, float]:
        named = [word.replace("NEW", f"t{number}") if isinstance(word, str) else word for word in words]
        return worker("raw", named[0], side.port, *named[1:])

    return run


def both(name: str, run: Run, goal: float | None, cpu_goal: bool = False) -> Cell:
    """The same run on both sides."""
    return Cell(name, run, run, goal, cpu_goal)


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


@dataclass(frozen=True)
class Stored:
    """A topic that is filled once and read by many cells; ``share`` is its messages, as a multiple of the run's."""

    kind: str
    size: int
    share: float
    codec: str = "none"


STORED = {
    "equal": Stored("equal", 200, SETTLED),
    "lognormal": Stored("lognormal", 200, SETTLED),
    "gz": Stored("equal", 200, 1, "gzip"),
    "k1": Stored("equal", 1_000, 0.2),
    "k10": Stored("equal", 10_000, 0.02),
    "k100": Stored("equal", 100_000, 0.002),
}


def fill(side: Side, n: int) -> None:
    """Fill the topics that are read."""
    for topic, stored in STORED.items():
        worker("raw", "fill", side.port, topic, stored.kind, stored.size, round(n * stored.share), stored.codec)


def cells(n: int) -> list[Cell]:
    """Producing, fetching and consuming; ``n`` messages in most of them."""
    fetched = 2_000 * n
    produced = own("produce", "NEW", n)
    found = [
        both("raw produce, sets of 50, equal", raw("produce", "NEW", "equal", 200, 50, n, 1, 1), None),
        both("raw produce, sets of 50, lognormal", raw("produce", "NEW", "lognormal", 200, 50, n, 1, 1), 1.5),
        both("raw produce, 10 connections", raw("produce", "NEW", "equal", 200, 50, n, 10, 1), None),
        both("raw produce, 100 connections", raw("produce", "NEW", "equal", 200, 50, n, 100, 1), None),
        Cell("produce, own clients, equal", ours("produce", "NEW", "equal", n, "none"), produced),
        Cell(
            "produce, own clients, lognormal (0.7: equal)",
            ours("produce", "NEW", "lognormal", n, "none"),
            produced,
            1.5,
        ),
        Cell(
            "produce gzip, own clients",
            ours("produce", "NEW", "equal", n // 4, "gzip"),
            own("produce", "NEW", n // 4, "gzip"),
            1.0,
        ),
        Cell("consume gzip, own clients", ours("consume", "gz", n), own("consume", "gz", n), 1.0),
    ]
    found += [
        both(f"raw fetches of 300 KB, {k} readers", raw("fetch", "equal", 210, 300 << 10, fetched, k), 1.0, True)
        for k in (1, 10, 100)
    ]
    found += [
        both(
            f"raw fetches, messages of {size} KB",
            raw("fetch", f"k{size}", 1000 * size + 10, 300 << 10, fetched, 1),
            1.0,
            True,
        )
        for size in (1, 10, 100)
    ]
    for kind in ("equal", "lognormal"):
        group, many = own("group", kind, SETTLED * n), 4 * n
        found += [
            Cell(
                f"consume by offset, {kind}", ours("consume", kind, SETTLED * n), own("consume", kind, SETTLED * n), 1.0
            ),
            Cell(f"consume in a group, {kind}", ours("group", kind, many, "messages"), group, 1.0),
            Cell(f"consume in chunks, {kind}", ours("group", kind, many, "chunks"), group, 2.0),
            Cell(f"consume in views, {kind}", ours("group", kind, many, "views"), group),
        ]
    return found


def partition_cells(n: int) -> list[Cell]:
    """Many partitions, on brokers of their own: the other cells should not have a thousand logs beside them."""
    return [
        both(f"raw produce, {k} partitions", raw("produce", f"p{k}", "equal", 200, 50, n, 1, k), goal)
        for k, goal in ((10, None), (100, 1.0), (1000, 1.0))
    ]
