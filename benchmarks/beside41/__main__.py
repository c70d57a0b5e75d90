"""``make bench-41``: the modern port beside a real Kafka 4.1, the same clients against both, in shuffled rounds."""

from __future__ import annotations

import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from benchmarks.beside07.brokers import Side
from benchmarks.beside41.brokers import Ours, Real, jars
from benchmarks.measure import busy_loop, say
from kafka2011.child import die_with_parent

RESULTS = Path(__file__).parents[2] / "docs" / "results"
Got = tuple[float, float, float]


def driver(*words: object) -> dict[str, float]:
    """A client in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.beside41.drivers", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        cwd=Path(__file__).parents[2],
        preexec_fn=die_with_parent,
    )
    if done.returncode:
        raise RuntimeError(f"{words}: {(done.stderr or done.stdout).strip()[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def cells(n: int) -> dict[str, list[object]]:
    """Name to the words of its driver; a topic NEW is made for each round."""
    return {
        "raw frames, 50 to a batch": ["raw_produce", "NEW", n, 50],
        "raw frames, 500 to a batch": ["raw_produce", "NEW", 2 * n, 500],
        "librdkafka, 50 to a batch": ["librdkafka_produce", "NEW", n, 50],
        "librdkafka, default batches": ["librdkafka_produce", "NEW", 2 * n, 0],
        "Java, about 50 to a batch": ["java_produce", "NEW", n, 50 * 210],
        "Java, default batches": ["java_produce", "NEW", n, 16384],
        "librdkafka consumes": ["librdkafka_consume", "stored", 2 * n],
        "raw fetches of 1 MB": ["raw_fetch", "stored", 2000 * n, 1 << 20],
    }


def once(side: Side, words: list[object], number: int) -> Got:
    """Records per second; CPU seconds per million of the broker and of the client."""
    named = [f"r{number}-{words[0]}-{words[-1]}" if word == "NEW" else word for word in words]
    if "NEW" in words:
        driver("create", side.port, named[1], 1)
    broker, client = side.cpu_s(), _children_s()
    got = driver(named[0], side.port, *named[1:])
    million = got["messages"] / 1e6
    return got["messages"] / got["seconds"], (side.cpu_s() - broker) / million, (_children_s() - client) / million


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, found: dict[str, list[Got]]) -> str:
    """A line of the table."""
    ratios = [ours[0] / real[0] for ours, real in zip(found["ours"], found["4.1"], strict=True)]
    middle = {side: [statistics.median(got[i] for got in rounds) for i in range(3)] for side, rounds in found.items()}
    ours, real = middle["ours"], middle["4.1"]
    return (
        f"| {name} | {real[0]:,.0f} | {ours[0]:,.0f} | {statistics.median(ratios):.2f} ({min(ratios):.2f}–"
        f"{max(ratios):.2f}) | {real[1]:.3f} / {ours[1]:.3f} | {real[2]:.2f} / {ours[2]:.2f} |"
    )


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Shuffled rounds.")
@click.option("--records", default=500_000, show_default=True, help="Records in most cells, of 200 bytes.")
@click.option("--only", default="", help="Only the cells whose name contains this.")
@click.option("--write", is_flag=True, help=f"Write {RESULTS.name}/beside-41.md and .json.")
def main(rounds: int, records: int, only: str, write: bool) -> None:
    """Compare with a real Kafka 4.1, whose jars the environment variable KAFKA41_JARS names."""
    jars()
    chosen = {name: words for name, words in cells(records).items() if only in name}
    found: dict[str, dict[str, list[Got]]] = {name: {"ours": [], "4.1": []} for name in chosen}
    directory = Path(tempfile.mkdtemp(prefix="kafka2011-beside41-"))
    sides: list[Side] = []
    noise = []
    try:
        for kind in (Ours, Real):
            sides.append(kind(directory))
        for side in sides:
            driver("create", side.port, "stored", 1)
            driver("raw_produce", side.port, "stored", 2 * records, 50)
        for number in range(-1, rounds):  # the first warms the virtual machine up and does not count
            noise.append(busy_loop())
            for name in random.sample(sorted(chosen), len(chosen)):
                for side in random.sample(sides, 2):
                    got = once(side, chosen[name], number + 1)
                    if number >= 0:
                        found[name][side.name].append(got)
                if number >= 0:
                    say(f"{number + 1}/{rounds} {row(name, found[name])}")
        memory = {side.name: side.memory_mb() for side in sides}
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(directory, ignore_errors=True)
    lines = [
        f"{rounds} shuffled rounds after one that does not count, {records:,} records of 200 bytes in most cells. "
        f"A fixed loop took {min(noise):.2f} to {max(noise):.2f} s before the rounds. Memory of the brokers: ours "
        f"{memory['ours']:.0f} MB, 4.1 {memory['4.1']:.0f} MB.",
        "",
        "| cell | 4.1, records/s | ours, records/s | ours / 4.1, median (spread) | broker CPU s/M, 4.1 / ours | "
        "client CPU s/M, 4.1 / ours |",
        "|---|---:|---:|---|---|---|",
        *(row(name, by_side) for name, by_side in found.items()),
    ]
    print("\n".join(lines))
    if write:
        (RESULTS / "beside-41.md").write_text("\n".join(lines) + "\n")
        (RESULTS / "beside-41.json").write_text(json.dumps({"rounds": rounds, "cells": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
