"""What the rounds gave: medians with their spread, and whether a goal is reached beyond the machine's noise."""

from __future__ import annotations

import statistics

from benchmarks.beside07.cells import Cell

HEAD = [
    "| cell | 0.7, msg/s | ours, msg/s | ours / 0.7, median (spread) | goal | broker CPU s/M, 0.7 / ours | "
    "client CPU s/M, 0.7 / ours | reached |",
    "|---|---:|---:|---|---:|---|---|---|",
]


class Measured:
    """The rounds of one cell, by side."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.rates: dict[str, list[float]] = {"ours": [], "0.7": []}
        self.cpu: dict[str, list[float]] = {"ours": [], "0.7": []}
        self.client_cpu: dict[str, list[float]] = {"ours": [], "0.7": []}

    def ratios(self) -> list[float]:
        """Ours / 0.7, round by round."""
        return [a / b for a, b in zip(self.rates["ours"], self.rates["0.7"], strict=True)]

    def cpu_ratio(self) -> float:
        """The broker's CPU per message, ours / 0.7: medians, which a busy machine disturbs less than rates."""
        return statistics.median(self.cpu["ours"]) / max(1e-9, statistics.median(self.cpu["0.7"]))

    def verdict(self) -> str:
        """Whether the goal is reached: *yes* in every round, *median* in most, *no*; and the goal for CPU."""
        words = []
        ratios, goal = self.ratios(), self.cell.goal
        if goal is not None:
            reached = "median" if statistics.median(ratios) >= goal else "no"
            words.append("yes" if min(ratios) >= goal else reached)
        if self.cell.cpu_goal:
            words.append(f"CPU {'yes' if self.cpu_ratio() <= 1 else 'no'}")
        return ", ".join(words) or "–"

    def row(self) -> str:
        """A line of the table."""
        ratio = self.ratios()
        middle, cpu, client = (
            {side: statistics.median(values) for side, values in by_side.items()}
            for by_side in (self.rates, self.cpu, self.client_cpu)
        )
        goal = f"{self.cell.goal:g}" if self.cell.goal else "–"
        return (
            f"| {self.cell.name} | {middle['0.7']:,.0f} | {middle['ours']:,.0f} | {statistics.median(ratio):.2f} "
            f"({min(ratio):.2f}–{max(ratio):.2f}) | {goal} | {cpu['0.7']:.3f} / {cpu['ours']:.3f} | "
            f"{client['0.7']:.2f} / {client['ours']:.2f} | {self.verdict()} |"
        )


def sizes_compared(found: dict[str, Measured]) -> list[str]:
    """How much of the speed for equal sizes is left where sizes vary, ours, round by round."""
    lines = []
    for what, goal in (
        ("consume by offset", 0.9),
        ("consume in a group", 0.9),
        ("raw produce, sets of 50", 0.85),
        ("produce, own clients", 0.85),
    ):
        equal = found.get(f"{what}, equal")
        varied = found.get(f"{what}, lognormal") or found.get(f"{what}, lognormal (0.7: equal)")
        if equal is not None and varied is not None:
            ratios = [b / a for a, b in zip(equal.rates["ours"], varied.rates["ours"], strict=True)]
            lines.append(
                f"| {what}: lognormal / equal, ours | {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f}–{max(ratios):.2f}) | {goal} |"
            )
    return lines
