"""A consumer as a process of its own that writes down everything it does: ``python -m …member CONNECT GROUP …``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from consumers.algorithm1.consumer import Consumer
from consumers.events import (
    Claimed,
    Committed,
    ConsumerRegistered,
    DeliveryHeld,
    DeliveryResumed,
    OffsetReset,
    Released,
    SessionLost,
)
from kafka2011.events import Entry
from tests.checker.history import HistoryFile


def main(connect: str, group: str, topic: str, history_path: str, proc: str, session_s: str, edition: str) -> None:
    history = HistoryFile(Path(history_path), proc)
    held: set[str] = set()

    def write_down(entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Claimed):
            held.add(f"{event.topic}/{event.partition}")
            history.write("own", key=f"{event.topic}/{event.partition}")
        elif isinstance(event, Released):
            held.discard(f"{event.topic}/{event.partition}")
            history.write("release", key=f"{event.topic}/{event.partition}")
        elif isinstance(event, SessionLost):
            for key in sorted(held):
                history.write("release", key=key)
            held.clear()
            history.write("reborn", reborn_as=event.reborn_as)
        elif isinstance(event, Committed):
            for key, offset in event.offsets.items():
                history.write("commit", key=key, off=offset)
        elif isinstance(event, ConsumerRegistered):
            history.write("session", kind="info", session=event.session)
        elif isinstance(event, DeliveryHeld | DeliveryResumed):
            history.write(event.name, kind="info")
        elif isinstance(event, OffsetReset):
            history.write("reset", kind="info", asked=event.asked, moved_to=event.moved_to)

    stopping: list[int] = []
    # An exception in the middle of a message would leave that message unfinished, and rightly so: it would be
    # delivered again. This application finishes the message in its hand first.
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    with Consumer(
        connect,
        group,
        edition=edition,
        session_timeout_s=float(session_s),
        autocommit_interval_s=0.3,
        timeout_s=0.1,
    ) as consumer:
        consumer.journal.subscribe(write_down)
        stream = consumer.create_message_streams(topic)[0]
        while not stopping:
            for message in stream:
                key = f"{message.topic}/{message.partition}"
                history.write("poll", key=key, v=[[message.offset, message.next_offset, message.payload.decode()]])
                history.write("done", key=key, off=message.next_offset)
                if stopping:
                    consumer.commit()
                    break
    history.write("left", kind="info")


if __name__ == "__main__":
    main(*sys.argv[1:])
