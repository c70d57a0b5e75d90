"""One front-end server of the demo: publishes what its members do, and counts it for the audit.

Paper: §3.2 (the producer), §4 (each producer publishes how many messages it sent per topic and window).
"""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import click

from classroom.cluster.processes import write_ready
from classroom.demo.events import SCHEMAS, Members
from classroom.demo.journal_file import journal_to
from kafka2011.avro import FileSchemaRegistry
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.producer.audit import Audit
from kafka2011.producer.producer import Producer
from zk_registry.router import ZooKeeperRouter

TICK_S = 0.05


@click.command()
@click.option("--zookeeper", required=True)
@click.option("--name", required=True)
@click.option("--rate", type=float, required=True, help="Events per second.")
@click.option("--directory", type=click.Path(path_type=Path), required=True, help="The demo's directory.")
@click.option("--drop-file", type=click.Path(path_type=Path), required=True)
@click.option("--ready-file", type=click.Path())
def main(zookeeper: str, name: str, rate: float, directory: Path, drop_file: Path, ready_file: str | None) -> None:
    """Publish until SIGTERM; then flush, say how many, and end."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    registry = FileSchemaRegistry(directory / "schemas")
    ids = {topic: registry.register(topic, schema) for topic, schema in SCHEMAS.items()}

    def timestamp_of(payload: bytes) -> int:
        return int(registry.decode(payload)["timestamp"])

    audit = Audit(timestamp_of, producer=name)
    journal = journal_to(directory / "journal" / f"{name}.jsonl")
    router = ZooKeeperRouter(zookeeper)
    # What is dropped is counted at the end; a front-end server of the demo does not stop for it.
    producer = Producer(router, audit=audit, linger_ms=20, journal=journal, on_drop=lambda *_: None)
    write_ready(ready_file, {})
    sent = dropped = ticks = 0
    events = Members(seed=hash(name) & 0xFFFF).events()
    began = SYSTEM_CLOCK.monotonic()
    while not over.wait(TICK_S):
        ticks += 1
        due = int((SYSTEM_CLOCK.monotonic() - began) * rate) - sent
        for _ in range(max(due, 0)):
            topic, member, fields = next(events)
            record = {"timestamp": SYSTEM_CLOCK.wall_ms(), "member": member} | fields
            payload = registry.encode(ids[topic], record)
            sent += 1
            if _is_dropped(drop_file, sent):
                # Lost on the way: the producer has counted it, the broker never sees it.
                audit.count(topic, [payload])
                dropped += 1
            else:
                producer.send(topic, payload, key=str(member))
    producer.close()
    router.close()
    lost = producer.counters.dropped + dropped
    results = directory / "results"
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps({"sent": sent, "lost": lost}))


def _is_dropped(drop_file: Path, number: int) -> bool:
    """The page's switch: while the file holds n, every n-th message is thrown away."""
    if number % 50 and not drop_file.exists():
        return False
    try:
        return number % int(drop_file.read_text()) == 0
    except (FileNotFoundError, ValueError):
        return False


if __name__ == "__main__":
    main()
