"""``make bench-07``: kafka2011 beside the real 0.7, shuffled rounds, medians with their spread, CPU of the broker."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import tempfile
from pathlib import Path

import click

from benchmarks.beside07.brokers import VARIABLE, Ours, Real, Side
from benchmarks.beside07.cells import Cell, Run, cells, fill, partition_cells, worker
from benchmarks.beside07.table import HEAD, Measured, sizes_compared
from benchmarks.measure import busy_loop, say
from zk_registry.embedded import EmbeddedZooKeeper

RESULTS = Path(__file__).parents[2] / "docs" / "results"


class Field:
    """The two brokers, each with a ZooKeeper of its own: a group must not find the other side's broker."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.zookeepers: dict[str, EmbeddedZooKeeper] = {}
        self.sides: list[Side] = []
        self.noise: list[float] = []
        """Seconds of a fixed loop, before each round: how busy the machine is."""
        for kind in (Ours, Real):
            zookeeper = self.zookeepers[kind.name] = EmbeddedZooKeeper(data_dir=directory / f"zookeeper-{kind.name}")
            zookeeper.start()
            self.sides.append(kind(directory, zookeeper.connect))

    def stop(self) -> None:
        """End both."""
        for side in self.sides:
            side.stop()
        for zookeeper in self.zookeepers.values():
            zookeeper.stop()

    def memory_mb(self) -> dict[str, float]:
        """Resident memory of the brokers now."""
        return {side.name: side.memory_mb() for side in self.sides}

    def run(self, chosen: list[Cell], rounds: int) -> list[Measured]:
        """All cells in rounds, shuffled anew each time, after one round that warms the virtual machine up."""
        found = [Measured(cell) for cell in chosen]
        for cell in chosen:
            if cell.ours is cell.real:
                self._once(cell.real, self.sides[1], rounds)
        for number in range(rounds):
            self.noise.append(busy_loop())
            shared: dict[int, tuple[float, float, float]] = {}
            for measured in random.sample(found, len(found)):
                self._measure(measured, number, shared)
                say(f"{number + 1}/{rounds} {measured.row()}")
        return found

    def _measure(self, measured: Measured, number: int, shared: dict[int, tuple[float, float, float]]) -> None:
        cell = measured.cell
        for side in random.sample(self.sides, len(self.sides)):
            if side.name == "ours":
                got = self._once(cell.ours, side, number)
            else:
                got = shared[id(cell.real)] if id(cell.real) in shared else self._once(cell.real, side, number)
                shared[id(cell.real)] = got
            for value, into in zip(got, (measured.rates, measured.cpu, measured.client_cpu), strict=True):
                into[side.name].append(value)

    def _once(self, run: Run, side: Side, number: int) -> tuple[float, float, float]:
        """Messages per second; CPU seconds per million of the broker, and of the clients with their start."""
        broker, client = side.cpu_s(), _children_s()
        got = run(side, self.zookeepers[side.name].connect, number)
        million = got["messages"] / 1e6
        return got["messages"] / got["seconds"], (side.cpu_s() - broker) / million, (_children_s() - client) / million


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def latencies(directory: Path, rounds: int) -> list[str]:
    """How long a message takes with every broker's default flush, a reader waiting: the middle round by its p50."""
    rows = []
    for kind in (Ours, Real):
        (directory / "latency").mkdir(exist_ok=True)
        side = kind(directory / "latency", "", {})
        try:
            for rate in (100, 1_000, 10_000):
                waits = [worker("raw", "latency", side.port, f"latency{rate}", rate, 4) for _ in range(rounds)]
                waits.sort(key=lambda got: got["p50_ms"])
                got = waits[len(waits) // 2]
                spread = f"{waits[0]['p50_ms']:.1f}–{waits[-1]['p50_ms']:.1f}"
                rows.append(f"| {side.name} | {rate:,}/s | {got['p50_ms']:.1f} ({spread}) | {got['p99_ms']:.1f} |")
                say(rows[-1])
        finally:
            side.stop()
    return rows


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Shuffled rounds.")
@click.option("--messages", default=500_000, show_default=True, help="Messages in most cells.")
@click.option("--only", default="", help="Only the cells whose name contains this; no latencies.")
@click.option("--write", is_flag=True, help=f"Write {RESULTS.name}/beside-07.md and .json.")
def main(rounds: int, messages: int, only: str, write: bool) -> None:
    """Compare with the real Kafka 0.7, whose jars the environment variable KAFKA07_LIB names."""
    if VARIABLE not in os.environ:
        raise click.ClickException(f"{VARIABLE} is not set; let it name a directory with the jars of Kafka 0.7.0")
    directory = Path(tempfile.mkdtemp(prefix="kafka2011-beside07-"))
    found: list[Measured] = []
    noise: list[float] = []
    memory: dict[str, float] = {}
    waits: list[str] = []
    try:
        for name, all_cells in (("main", cells(messages)), ("partitions", partition_cells(messages))):
            chosen = [cell for cell in all_cells if only in cell.name]
            if not chosen:
                continue
            field = Field(directory / name)
            try:
                if name == "main":
                    for side in field.sides:
                        say(f"filling {side.name}")
                        fill(side, messages)
                found += field.run(chosen, rounds)
                memory = memory or field.memory_mb()
                noise += field.noise
            finally:
                field.stop()
        if not only:
            waits = latencies(directory, 3)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines = [
        f"{rounds} shuffled rounds, {messages:,} messages. A fixed loop took {min(noise):.2f} to {max(noise):.2f} s "
        f"before the rounds; load average {os.getloadavg()[1]:.1f} at the end. "
        f"Memory of the brokers: ours {memory['ours']:.0f} MB, 0.7 {memory['0.7']:.0f} MB.",
        "",
        *HEAD,
        *(measured.row() for measured in found),
        "",
        *(
            ["| ours alone | median (spread) | goal |", "|---|---|---:|", *compared, ""]
            if (compared := sizes_compared({m.cell.name: m for m in found}))
            else []
        ),
        *(["| broker | rate | p50 ms (spread) | p99 ms |", "|---|---|---:|---:|", *waits] if waits else []),
    ]
    print("\n".join(lines))
    if write:
        (RESULTS / "beside-07.md").write_text("\n".join(lines) + "\n")
        kept = [
            {"cell": m.cell.name, "goal": m.cell.goal, "rates": m.rates, "cpu": m.cpu, "client_cpu": m.client_cpu}
            for m in found
        ]
        (RESULTS / "beside-07.json").write_text(json.dumps({"rounds": rounds, "cells": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
