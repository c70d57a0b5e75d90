"""Does it add up? Sent = stored = delivered to every group = rows in the warehouse, and the audit agrees.

Paper: §3.3 (at least once: everything, perhaps twice after a crash), §4 (the audit).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from classroom.cluster.cluster import Cluster
from classroom.demo.deliveries import Place, Tally, tally
from classroom.demo.stored import Stored, stored_messages


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the warehouse holds and what the audit says of it."""

    rows: int
    verdict: str


@dataclass(slots=True)
class Summary:
    """The counts of a run and what is wrong with them, if anything."""

    sent: int
    stored: int
    groups: dict[str, Tally]
    loaded: Loaded
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The summary for people."""
        rows = [("messages produced", f"{self.sent:,}"), ("stored by the brokers", f"{self.stored:,}")]
        for group, given in self.groups.items():
            rows.append((f"delivered to {group}", f"{len(given.distinct):,}  (twice: {given.duplicates:,})"))
        rows += [("rows loaded", f"{self.loaded.rows:,}"), ("audit", self.loaded.verdict)]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
        if self.problems:
            return [*lines, "", "it does not add up:", *(f"  - {problem}" for problem in self.problems)]
        return [*lines, "", "it adds up"]

    def as_dict(self) -> dict[str, Any]:
        """The summary for programs."""
        return {
            "sent": self.sent,
            "stored": self.stored,
            "groups": {
                name: {"delivered": len(given.distinct), "duplicates": given.duplicates}
                for name, given in self.groups.items()
            },
            "loaded": {"rows": self.loaded.rows, "audit": self.loaded.verdict},
            "problems": self.problems,
        }


def caught_up(directory: Path, cluster: Cluster, groups: list[str], patience_s: float) -> None:
    """Wait until the brokers expose everything that was sent and every group was given it, or patience ends."""
    sent, lost = _sent(directory)
    deadline = time.monotonic() + patience_s
    before = -1
    while time.monotonic() < deadline:
        stored = stored_messages(cluster)
        n = len(stored.messages)
        # Messages are exposed only after a flush (§3.1), so the last ones sent appear a little later. Where some cannot
        # be read, nobody knows how many: then it is all there when nothing more appears.
        is_all = n >= sent - lost or (bool(stored.damaged) and n == before)
        if is_all and all(stored.messages <= _given(directory, group).distinct for group in groups):
            return
        before = n
        time.sleep(0.5)


def make_summary(directory: Path, cluster: Cluster, groups: list[str], loaded: Loaded) -> Summary:
    """Count everything once more and name every difference."""
    given = {group: _given(directory, group) for group in groups}
    return compared(*_sent(directory), stored_messages(cluster), given, loaded)


def compared(sent: int, lost: int, stored: Stored, given: dict[str, Tally], loaded: Loaded) -> Summary:
    """The summary of these counts, with a line for every difference."""
    n_stored = len(stored.messages)
    summary = Summary(sent, n_stored, given, loaded)
    summary.problems += [str(damage) for damage in stored.damaged]
    if sent == 0:
        summary.problems.append("the producer did not say how many messages it sent")
    if n_stored != sent:
        known = f" ({lost:,} of them counted as lost by the producer)" if lost else ""
        where = "did not reach a broker, or cannot be read there" if stored.damaged else "did not reach a broker"
        summary.problems.append(f"{sent - n_stored:,} messages {where}{known}")
    for group, told in given.items():
        missing, unknown = stored.messages - told.distinct, told.distinct - stored.messages
        # What was read before it was damaged was given rightly.
        strange = {place for place in unknown if not any(damage.holds(place) for damage in stored.damaged)}
        if missing:
            summary.problems.append(f"{len(missing):,} messages were not delivered to {group}, e.g. {_named(missing)}")
        if strange:
            number = f"{len(strange):,} messages that no broker holds"
            summary.problems.append(f"{group} was given {number}, e.g. {_named(strange)}")
    if loaded.rows != n_stored:
        summary.problems.append(f"the warehouse has {loaded.rows:,} rows for {n_stored:,} stored messages")
    if loaded.verdict != "complete":
        summary.problems.append(f"the audit says: {loaded.verdict}")
    return summary


def _named(places: set[Place]) -> str:
    topic, partition, offset = min(places)
    return f"{topic} {partition} at offset {offset:,}"


def _sent(directory: Path) -> tuple[int, int]:
    """What the producers say they sent, and how much of it they know to be lost."""
    results = [json.loads(path.read_text()) for path in sorted((directory / "results").glob("*.json"))]
    return sum(result["sent"] for result in results), sum(result["lost"] for result in results)


def _given(directory: Path, group: str) -> Tally:
    return tally((directory / "deliveries").glob(f"{group}@*.txt"))
