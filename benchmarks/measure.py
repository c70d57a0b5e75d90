"""Run cells in worker processes, interleaved in rounds, and keep medians and spreads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.system import PATIENCE_S, Cell, System
from kafka2011.child import die_with_parent


@dataclass(slots=True)
class Measured:
    """All rounds of one cell."""

    system: str
    cell: Cell
    rates: list[float] = field(default_factory=list)
    client_cpu_us: list[float] = field(default_factory=list)
    server_cpu_us: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """Half the range, relative to the median."""
        return (max(self.rates) - min(self.rates)) / 2 / self.median

    def as_dict(self) -> dict[str, object]:
        return {
            "system": self.system,
            "cell": self.cell.label,
            "messages": self.cell.messages,
            "median_per_s": round(self.median),
            "spread": round(self.spread, 3),
            "rates_per_s": [round(rate) for rate in self.rates],
            "client_cpu_us_per_message": round(statistics.median(self.client_cpu_us), 3),
            "server_cpu_us_per_message": round(statistics.median(self.server_cpu_us), 3),
        }


Results = dict[tuple[str, str, int], Measured]


def say(text: str) -> None:
    """A progress line."""
    print(text, file=sys.stderr, flush=True)


def busy_loop() -> float:
    """Seconds of a fixed piece of Python: how busy the machine is, before and after."""
    started = time.perf_counter()
    total = 0
    for i in range(3_000_000):
        total += i
    return time.perf_counter() - started


def run_cell(system: System, cell: Cell, topic: str) -> tuple[float, float]:
    """Measure one cell once, in its own process; return seconds and CPU seconds."""
    words = [system.name, str(system.port), system.hint, cell.role, topic, str(cell.batch), str(cell.messages)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", *words],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=die_with_parent,
    )
    if done.returncode:
        raise RuntimeError(f"{system.name}, {cell.label}: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    return found["seconds"], found["cpu_s"]


def run_rounds(systems: list[System], rounds: int, scale: float, missing: dict[str, str]) -> Results:
    """All cells of all systems, one after the other, ``rounds`` times. A system that fails is named and left out."""
    results: Results = {}
    stored: dict[str, str] = {}
    for round_number in range(1, rounds + 1):
        for system in systems:
            if system.name in missing:
                continue
            try:
                for cell in system.cells(scale):
                    topic = f"r{round_number}b{cell.batch}" if cell.role == "produce" else stored[system.name]
                    before = system.cpu_seconds()
                    seconds, cpu_s = run_cell(system, cell, topic)
                    if cell.role == "produce":
                        stored[system.name] = topic
                    measured = results.setdefault((system.name, cell.role, cell.batch), Measured(system.name, cell))
                    measured.rates.append(cell.messages / seconds)
                    measured.client_cpu_us.append(1e6 * cpu_s / cell.messages)
                    measured.server_cpu_us.append(1e6 * (system.cpu_seconds() - before) / cell.messages)
                    say(f"round {round_number}/{rounds}  {system.name}, {cell.label}: {measured.rates[-1]:,.0f} msg/s")
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                say(f"round {round_number}/{rounds}  {system.name} failed: {error}")
                missing[system.name] = f"failed in round {round_number}: {error}"
    return results
