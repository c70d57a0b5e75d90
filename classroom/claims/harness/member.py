"""A consumer in a process of its own, as an application would write it: work on each message, note it in a ledger.

    member LEDGER ZOOKEEPER GROUP TOPIC [--name value …]

The ledger gets a line before and after the work on each message: ``begin 17 4242 1.25`` (number, next offset,
seconds on the machine's clock). What it can be told:

- ``--count handed-out`` stores offsets when a message is given to the application (as Kafka 0.7 counted), ``done``
  when the application is finished with it;
- ``--commit-every n`` messages; ``--die-at n``: end as hard as by ``kill -9`` while at work on the n-th message;
- ``--work-s`` how long the work on a message takes; ``--stop-at n`` leaves in order after the n-th message.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from consumers.algorithm1.consumer import Consumer


def main() -> None:
    """Consume until told to stop."""
    wish = _wishes().parse_args(sys.argv[1:])
    consumer = Consumer(
        wish.zookeeper,
        wish.group,
        consumer_id=wish.id or None,
        edition=wish.edition,
        reset=wish.reset,
        autocommit=False,
        session_timeout_s=wish.session_s,
        timeout_s=wish.idle_s or None,
    )
    with open(wish.ledger, "a", buffering=1) as ledger, consumer:
        stream = consumer.create_message_streams(wish.topic)[0]
        print("joined", file=ledger)
        for number, message in enumerate(stream, 1):
            due = number % wish.commit_every == 0
            if due and wish.count == "handed-out":
                consumer.commit()
            what = f"{message.payload[:12].decode()} {message.next_offset} {message.partition}"
            print("begin", what, f"{time.monotonic():.6f}", file=ledger)
            if number == wish.die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if wish.work_s:
                time.sleep(wish.work_s)
            print("end", what, f"{time.monotonic():.6f}", file=ledger)
            if due and wish.count == "done":
                consumer.commit()
            if number == wish.stop_at:
                consumer.commit()
                break
        print("left", file=ledger)


def _wishes() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    for name in ("ledger", "zookeeper", "group", "topic"):
        parser.add_argument(name)
    parser.add_argument("--id", default="")
    parser.add_argument("--edition", default="sound")
    parser.add_argument("--reset", default="smallest")
    parser.add_argument("--count", choices=("done", "handed-out"), default="done")
    parser.add_argument("--session-s", type=float, default=2.0)
    parser.add_argument("--idle-s", type=float, default=0.0)
    parser.add_argument("--work-s", type=float, default=0.0)
    for name, usual in (("commit-every", 1), ("die-at", 0), ("stop-at", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    return parser
