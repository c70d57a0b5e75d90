"""Does it add up? Sent = stored = delivered to every group = rows in the warehouse, and the audit agrees.

Paper: §3.3 (at least once: everything, perhaps twice after a crash), §4 (the audit).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumers.cluster.cluster import Cluster
from hadoop_etl.demo.deliveries import Place, Tally, tally
from hadoop_etl.demo.events import SCHEMAS
from kafka2011.client import BrokerConnection
from kafka2011.wire import decode_set
from kafka2011.wire.offsets import EARLIEST, LATEST
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession


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
    while time.monotonic() < deadline:
        stored = stored_messages(cluster)
        # Messages are exposed only after a flush (§3.1), so the last ones sent appear a little later.
        if len(stored) >= sent - lost and all(stored <= _given(directory, group).distinct for group in groups):
            return
        time.sleep(0.5)


def make_summary(directory: Path, cluster: Cluster, groups: list[str], loaded: Loaded) -> Summary:
    """Count everything once more and name every difference."""
    sent, lost = _sent(directory)
    stored = stored_messages(cluster)
    summary = Summary(sent, len(stored), {group: _given(directory, group) for group in groups}, loaded)
    if sent == 0:
        summary.problems.append("the producer did not say how many messages it sent")
    if len(stored) != sent:
        known = f" ({lost:,} of them counted as lost by the producer)" if lost else ""
        summary.problems.append(f"{sent - len(stored):,} messages did not reach a broker{known}")
    for group, given in summary.groups.items():
        missing, strange = stored - given.distinct, given.distinct - stored
        if missing:
            summary.problems.append(f"{len(missing):,} messages were not delivered to {group}, e.g. {min(missing)}")
        if strange:
            summary.problems.append(f"{group} was given {len(strange):,} messages that no broker holds")
    if loaded.rows != len(stored):
        summary.problems.append(f"the warehouse has {loaded.rows:,} rows for {len(stored):,} stored messages")
    if loaded.verdict != "complete":
        summary.problems.append(f"the audit says: {loaded.verdict}")
    return summary


def stored_messages(cluster: Cluster) -> set[Place]:
    """Every flushed message of the activity topics, read from the brokers by offset (§3.1)."""
    session = ZooKeeperSession(cluster.zookeeper)
    session.start()
    try:
        registry = BrokerRegistry(session)
        brokers = registry.brokers()
        places = [(topic, partition) for topic in SCHEMAS for partition in registry.partitions(topic)]
    finally:
        session.close()
    found: set[Place] = set()
    for topic, partition in places:
        address = brokers[partition.broker_id]
        with BrokerConnection(address.host, address.port) as connection:
            offset = connection.offsets(topic, partition.partition, EARLIEST)[0]
            end = connection.offsets(topic, partition.partition, LATEST)[0]
            while offset < end:
                messages = decode_set(connection.fetch(topic, partition.partition, offset), offset)
                if not messages:
                    break
                found.update((topic, str(partition), message.offset) for message in messages)
                offset = messages[-1].next_offset
    return found


def _sent(directory: Path) -> tuple[int, int]:
    """What the producers say they sent, and how much of it they know to be lost."""
    results = [json.loads(path.read_text()) for path in sorted((directory / "results").glob("*.json"))]
    return sum(result["sent"] for result in results), sum(result["lost"] for result in results)


def _given(directory: Path, group: str) -> Tally:
    return tally((directory / "deliveries").glob(f"{group}@*.txt"))
