"""Consume, transform, produce: one program in three orders, as a process that kills itself where it is told to.

    at most once    commit the offset, then produce
    at least once   produce, then commit the offset
    exactly once    produce and commit the offset in one transaction

``python -m classroom.semantics.worker MODE BOOTSTRAP SOURCE TARGET END LIFE`` works until offset END of the source is
passed; in each LIFE greater than 0 it is killed (SIGKILL) between the two steps of its second batch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from consumers.group_protocol.member import Consumer
from kafka2011.types import TopicPartition
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.producer import Producer

MODES = ("at most once", "at least once", "exactly once")
_BATCH = 10
_KILLED_IN_BATCH = 2


def main(mode: str, bootstrap: str, source: str, target: str, end: str, life: str) -> None:
    """Work; see the module."""
    place = TopicPartition(source, 0)
    settings: dict[str, object] = {"bootstrap.servers": bootstrap}
    if mode == "exactly once":
        settings["transactional.id"] = f"{source}-{target}"
    consuming = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{source}-{target}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "max.poll.records": _BATCH,
    }
    # The transaction an earlier life left open is ended by init_transactions: only then are its offsets known.
    with Producer(settings) as producer:
        if mode == "exactly once":
            producer.init_transactions()
        with Consumer(consuming) as consumer:
            consumer.assign([place])
            stored = consumer.committed([place])[place]
            at, batches = stored.offset if stored else 0, 0
            while at < int(end):
                records = consumer.poll(1.0)
                if records:
                    at, batches = records[-1].offset + 1, batches + 1
                    step = _Step(consumer, producer, target, place, dies=life != "0" and batches == _KILLED_IN_BATCH)
                    step.take(mode, records)


class _Step:
    """One batch."""

    def __init__(
        self, consumer: Consumer, producer: Producer, target: str, place: TopicPartition, *, dies: bool
    ) -> None:
        self._consumer, self._producer, self._target = consumer, producer, target
        self._place, self._dies = place, dies

    def take(self, mode: str, records: Sequence[ConsumerRecord]) -> None:
        if mode == "at most once":
            self._consumer.commit_sync()
            self._maybe_die()
            self._produce(records)
        elif mode == "at least once":
            self._produce(records)
            self._maybe_die()
            self._consumer.commit_sync()
        else:
            self._producer.begin_transaction()
            self._produce(records)
            offsets = {self._place: records[-1].offset + 1}
            self._producer.send_offsets_to_transaction(offsets, self._consumer.group_metadata())
            self._maybe_die()
            self._producer.commit_transaction()

    def _produce(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            self._producer.send(self._target, record.value)
        self._producer.flush()

    def _maybe_die(self) -> None:
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
