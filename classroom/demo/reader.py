"""One consumer of the demo's Algorithm 1 group, as an application would write it.

Paper: §3 (the sample consumer), §3.2 (the group). SIGUSR1 ends its ZooKeeper session, as a long pause would.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import click

from classroom.cluster.processes import write_ready
from classroom.demo.deliveries import Ledger
from classroom.demo.events import SCHEMAS
from classroom.demo.journal_file import journal_to
from consumers.algorithm1.consumer import Consumer
from zk_registry.session import ZooKeeperSession
from zk_registry.testing import expire


@click.command()
@click.option("--zookeeper", required=True)
@click.option("--group", required=True)
@click.option("--name", required=True)
@click.option("--directory", type=click.Path(path_type=Path), required=True, help="The demo's directory.")
@click.option("--ready-file", type=click.Path())
def main(zookeeper: str, group: str, name: str, directory: Path, ready_file: str | None) -> None:
    """Read until SIGTERM, then leave cleanly."""
    journal = journal_to(directory / "journal" / f"{name}.jsonl")
    ledger = Ledger(directory / "deliveries" / f"{group}@{name}.txt")
    session = ZooKeeperSession(zookeeper, journal=journal)
    consumer = Consumer(session, group, autocommit_interval_s=1.0, journal=journal)

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    def lose_session(number: int, frame: FrameType | None) -> None:
        # In a thread: the handler runs in between two steps of the reading thread and must not wait.
        identity = (zookeeper, session.session_id, session.password)
        threading.Thread(target=expire, args=identity, daemon=True).start()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, lose_session)
    with consumer:
        (stream,) = consumer.create_message_streams_by_filter(whitelist="|".join(SCHEMAS))
        write_ready(ready_file, {})
        for message in stream:
            ledger.write(message.topic, str(message.partition), message.offset)


if __name__ == "__main__":
    main()
