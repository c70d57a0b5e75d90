"""``make bench-producers``: four producers against one broker, in shuffled rounds."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from benchmarks.beside07.brokers import Side
from benchmarks.beside41.brokers import Ours, Real, jars
from benchmarks.measure import busy_loop, say
from benchmarks.producers.drivers import CLIENTS
from kafka2011.child import die_with_parent

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
CELLS = {
    "100 bytes": (100, False, 0),
    "100 bytes, keyed": (100, True, 0),
    "1,000 bytes": (1000, False, 0),
    "ours, transactions of 1,000 records of 100 bytes": (100, False, 1000),
}
"""Name to size, keyed, records in a transaction (of ours only)."""
Got = tuple[float, float]


def once(side: Side, client: str, topic: str, n: int, cell: tuple[int, bool, int]) -> Got:
    """Records per second, and the client's CPU seconds per million."""
    words = [client, side.port, topic, n, *cell]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.producers.drivers", *map(str, words)],
        capture_output=True, text=True, timeout=900, check=False, cwd=ROOT, preexec_fn=die_with_parent,
    )  # fmt: skip
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{words}: {(done.stderr or done.stdout).strip()[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found["records"] / found["seconds"], found["cpu"] / found["records"] * 1e6


def middle(found: list[Got], which: int) -> float:
    return statistics.median(one[which] for one in found)


def rows(found: dict[str, dict[str, list[Got]]]) -> list[str]:
    """The table; a ratio is the median of each round's, so that what disturbs a round disturbs both."""
    lines = [
        "| cell | client | records/s | CPU s/M | ours / it, rate | it / ours, CPU |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for cell, by_client in found.items():
        ours = by_client.get("ours") or found["100 bytes"]["ours"]
        for client, got in by_client.items():
            rate = statistics.median(a[0] / b[0] for a, b in zip(ours, got, strict=True))
            cpu = statistics.median(b[1] / a[1] for a, b in zip(ours, got, strict=True))
            lines.append(
                f"| {cell} | {client} | {middle(got, 0):,.0f} | {middle(got, 1):.2f} | {rate:.2f} | {cpu:.2f} |"
            )
    return lines


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Shuffled rounds.")
@click.option("--records", default=200_000, show_default=True, help="Records of one run.")
@click.option("--real", is_flag=True, help="Against a real Kafka 4.1, whose jars KAFKA41_JARS names.")
@click.option("--only", default="", help="Only the cells whose name contains this.")
@click.option("--write", is_flag=True, help=f"Write {RESULTS.name}/producers.md and .json.")
def main(rounds: int, records: int, real: bool, only: str, write: bool) -> None:
    """Compare the four."""
    if real:
        jars()
    chosen = {name: cell for name, cell in CELLS.items() if only in name}
    if any(cell[2] for cell in chosen.values()):
        chosen = {"100 bytes": CELLS["100 bytes"]} | chosen  # what transactions are compared with
    found: dict[str, dict[str, list[Got]]] = {
        name: {client: [] for client in (CLIENTS if not cell[2] else ["transactions"])} for name, cell in chosen.items()
    }
    directory = Path(tempfile.mkdtemp(prefix="kafka2011-producers-"))
    noise: list[float] = []
    side: Side = (Real if real else Ours)(directory)
    try:
        for number in range(rounds):
            noise.append(busy_loop())
            runs = [(name, client) for name, by_client in found.items() for client in by_client]
            for name, client in random.sample(runs, len(runs)):
                driver = "ours" if client == "transactions" else client
                topic = f"t{number}-{abs(hash((name, client)))}"
                found[name][client].append(once(side, driver, topic, records, chosen[name]))
                say(f"{number + 1}/{rounds} {name}, {client}: {found[name][client][-1][0]:,.0f} records/s")
    finally:
        side.stop()
        shutil.rmtree(directory, ignore_errors=True)
    where = "a real Kafka 4.1" if real else "our broker"
    lines = [
        f"{rounds} shuffled rounds of {records:,} records against {where}, idempotence and acks=all, each client's own "
        f"batches. A fixed loop took {min(noise):.2f} to {max(noise):.2f} s before the rounds.",
        "",
        *rows(found),
    ]
    print("\n".join(lines))
    if write:
        details: dict[str, Any] = {"rounds": rounds, "records": records, "real": real, "cells": found}
        (RESULTS / "producers.md").write_text("\n".join(lines) + "\n")
        (RESULTS / "producers.json").write_text(json.dumps(details, indent=1) + "\n")


if __name__ == "__main__":
    main()
