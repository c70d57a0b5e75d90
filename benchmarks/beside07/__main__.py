"""``make bench-07``: kafka2011 beside the real 0.7, shuffled rounds, medians with their spread, CPU of the broker."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import tempfile
from pathlib import Path

import click

from benchmarks.beside07.brokers import VARIABLE, Ours, Real, Side
from benchmarks.beside07.cells import Cell, cells, fill, worker
from benchmarks.measure import busy_loop, say
from zk_registry.embedded import EmbeddedZooKeeper

RESULTS = Path(__file__).parents[2] / "docs" / "results"


class Measured:
    """What the rounds of one cell gave, by side."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.rates: dict[str, list[float]] = {"ours": [], "0.7": []}
        self.cpu: dict[str, list[float]] = {"ours": [], "0.7": []}

    def ratios(self) -> list[float]:
        """Ours / 0.7, round by round."""
        return [a / b for a, b in zip(self.rates["ours"], self.rates["0.7"], strict=True)]

    def row(self) -> str:
        """A line of the table."""
        ratio = self.ratios()
        middle = {side: statistics.median(rates) for side, rates in self.rates.items()}
        cpu = {side: statistics.median(values) for side, values in self.cpu.items()}
        goal = f"{self.cell.goal:g}" if self.cell.goal else "–"
        return (
            f"| {self.cell.name} | {middle['0.7']:,.0f} | {middle['ours']:,.0f} | {statistics.median(ratio):.2f} "
            f"({min(ratio):.2f}–{max(ratio):.2f}) | {goal} | {cpu['0.7']:.3f} / {cpu['ours']:.3f} |"
        )


def measure(
    cell: Cell, sides: list[Side], zookeepers: dict[str, EmbeddedZooKeeper], number: int, measured: Measured
) -> None:
    """One round of one cell."""
    for side in random.sample(sides, len(sides)):
        before = side.cpu_s()
        run = cell.ours if side.name == "ours" else cell.real
        got = run(side, zookeepers[side.name].connect, number)
        measured.rates[side.name].append(got["messages"] / got["seconds"])
        measured.cpu[side.name].append(1e6 * (side.cpu_s() - before) / got["messages"])


def latencies(directory: Path, kinds: list[type[Ours] | type[Real]]) -> list[str]:
    """How long a message takes with every broker's default flush, a reader waiting."""
    rows = []
    for kind in kinds:
        (directory / "latency").mkdir(exist_ok=True)
        side = kind(directory / "latency", "", {})
        try:
            for rate in (100, 1_000, 10_000):
                got = worker("raw", "latency", side.port, f"latency{rate}", rate, 5)
                rows.append(f"| {side.name} | {rate:,}/s | {got['p50_ms']:.1f} | {got['p99_ms']:.1f} |")
                say(rows[-1])
        finally:
            side.stop()
    return rows


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Shuffled rounds.")
@click.option("--messages", default=500_000, show_default=True, help="Messages in most cells; twice as many are read.")
@click.option("--only", default="", help="Only the cells whose name contains this.")
@click.option("--write", is_flag=True, help=f"Write {RESULTS.name}/beside-07.md and .json.")
def main(rounds: int, messages: int, only: str, write: bool) -> None:
    """Compare with the real Kafka 0.7, whose jars the environment variable KAFKA07_LIB names."""
    if VARIABLE not in os.environ:
        raise click.ClickException(f"{VARIABLE} is not set; let it name a directory with the jars of Kafka 0.7.0")
    directory = Path(tempfile.mkdtemp(prefix="kafka2011-beside07-"))
    # A ZooKeeper for each side: a group must not find the other side's broker.
    zookeepers = {kind.name: EmbeddedZooKeeper(data_dir=directory / f"zookeeper-{kind.name}") for kind in (Ours, Real)}
    sides: list[Side] = []
    busy = busy_loop()
    try:
        for kind in (Ours, Real):
            zookeepers[kind.name].start()
            sides.append(kind(directory, zookeepers[kind.name].connect))
        chosen = [Measured(cell) for cell in cells(messages) if only in cell.name]
        for side in sides:
            say(f"filling {side.name}")
            fill(side, 2 * messages)
        for number in range(rounds):
            for measured in random.sample(chosen, len(chosen)):
                measure(measured.cell, sides, zookeepers, number, measured)
                say(f"{number + 1}/{rounds} {measured.row()}")
        memory = {side.name: side.memory_mb() for side in sides}
        for side in sides:
            side.stop()
        waits = [] if only else latencies(directory, [Ours, Real])
    finally:
        for one in (*sides, *zookeepers.values()):
            one.stop()
        shutil.rmtree(directory, ignore_errors=True)
    lines = [
        f"{rounds} shuffled rounds, {messages:,} messages; a fixed loop took {busy:.2f} s before and "
        f"{busy_loop():.2f} s after. Memory of the brokers: ours {memory['ours']:.0f} MB, 0.7 {memory['0.7']:.0f} MB.",
        "",
        "| cell | 0.7, msg/s | ours, msg/s | ours / 0.7, median (spread) | goal | broker CPU s/M, 0.7 / ours |",
        "|---|---:|---:|---|---:|---|",
        *(measured.row() for measured in chosen),
        "",
        *(["| broker | rate | p50 ms | p99 ms |", "|---|---|---:|---:|", *waits] if waits else []),
    ]
    print("\n".join(lines))
    if write:
        (RESULTS / "beside-07.md").write_text("\n".join(lines) + "\n")
        found = [{"cell": m.cell.name, "rates": m.rates, "cpu": m.cpu} for m in chosen]
        (RESULTS / "beside-07.json").write_text(json.dumps({"rounds": rounds, "cells": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
