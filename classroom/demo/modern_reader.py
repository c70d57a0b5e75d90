"""One member of the demo's modern group: the same topics, a coordinator instead of ZooKeeper watchers.

Paper: §3.2 asks who reads what; ``consumers.group_protocol`` is today's answer to the same question.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from classroom.cluster.processes import write_ready
from classroom.demo.deliveries import Ledger
from classroom.demo.events import SCHEMAS
from classroom.demo.journal_file import journal_to
from consumers.group_protocol.member import Consumer, ConsumerRecord
from kafka2011.types import BrokerPartition, TopicPartition
from kafka2011.wire import encode_set
from since2011.client.cluster import Cluster
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession


@click.command()
@click.option("--zookeeper", required=True, help="Only to find the brokers; the group does not use it.")
@click.option("--group", required=True)
@click.option("--name", required=True)
@click.option("--directory", type=click.Path(path_type=Path), required=True, help="The demo's directory.")
@click.option("--ready-file", type=click.Path())
def main(zookeeper: str, group: str, name: str, directory: Path, ready_file: str | None) -> None:
    """Read until SIGTERM, then leave cleanly."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    journal = journal_to(directory / "journal" / f"{name}.jsonl")
    ledger = Ledger(directory / "deliveries" / f"{group}@{name}.txt")
    session = ZooKeeperSession(zookeeper)
    session.start()
    try:
        registry = BrokerRegistry(session)
        bootstrap = [(address.host, address.port) for address in registry.modern_addresses().values()]
    finally:
        session.close()
    places = Places(bootstrap)
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        partition_assignment_strategy="cooperative-sticky",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        auto_commit_interval_ms=1_000,
        auto_offset_reset="earliest",
        journal=journal,
    ) as consumer:
        consumer.subscribe(SCHEMAS)
        write_ready(ready_file, {})
        while not over.is_set():
            for record in consumer.poll(0.5):
                ledger.write(record.topic, str(places.of(record)), first_byte(record))


def first_byte(record: ConsumerRecord) -> int:
    """The 2011 offset of a message whose record is numbered by its last byte (docs/modern-port.md)."""
    return record.offset + 1 - len(encode_set([record.value or b""]))


class Places:
    """The registries' names of partitions, by today's numbers."""

    def __init__(self, bootstrap: list[tuple[str, int]]) -> None:
        self._cluster = Cluster(bootstrap, client_id="demo-places")
        self._known: dict[TopicPartition, BrokerPartition] = {}

    def of(self, record: ConsumerRecord) -> BrokerPartition:
        """Which broker holds the record, and under which number there."""
        partition = TopicPartition(record.topic, record.partition)
        if partition not in self._known:
            self._known |= self._cluster.topics(SCHEMAS).places
        return self._known[partition]


if __name__ == "__main__":
    main()
