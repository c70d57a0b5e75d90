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
from consumers.group_protocol.member import Member
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
        modern = [(address.host, address.port) for address in registry.modern_addresses().values()]
        brokers = list(registry.brokers().values())
    finally:
        session.close()
    with Member(
        group,
        modern=modern,
        brokers=brokers,
        client_id=name,
        assignor="cooperative-sticky",
        session_ms=6_000,
        heartbeat_ms=1_000,
        auto_commit_s=1.0,
        journal=journal,
    ) as member:
        member.subscribe(SCHEMAS)
        write_ready(ready_file, {})
        while not over.is_set():
            for message in member.poll(0.5):
                ledger.write(message.topic, str(message.place), message.offset)


if __name__ == "__main__":
    main()
