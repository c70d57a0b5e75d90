"""One member as a process of its own: reads, and writes down what it owns and reads, one JSON object per line.

    python -m consumers.sim.compare.live_member '{"protocol": "eager", "modern": …, "broker": …, "out": "FILE"}'

SIGTERM closes it in peace. Times are the machine's monotonic clock, the same for all processes.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from consumers.algorithm1.consumer import Consumer
from consumers.events import Claimed, Released
from consumers.group_protocol.member import Consumer as GroupConsumer
from consumers.group_protocol.member import Listener
from consumers.sim.compare.side_by_side import ALGORITHM_1, COOPERATIVE, EAGER, KIP_848
from consumers.sim.compare.world import GROUP, HEARTBEAT_S, TOPIC
from kafka2011.events import Entry, Journal
from kafka2011.types import TopicPartition

COMMIT_S = 1.0
_ASSIGNORS = {EAGER: "range", COOPERATIVE: "cooperative-sticky", KIP_848: "uniform"}


class _Diary(Listener):
    """Writes ownership and reads as they happen."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, what: str, partition: int, **more: object) -> None:
        self._out.write(json.dumps({"t": time.monotonic(), "what": what, "partition": partition} | more) + "\n")
        self._out.flush()

    def _all(self, what: str, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.write(what, each.partition)

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._all("began", partitions)

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._all("ended", partitions)

    def lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._all("ended", partitions)


class _Leave(Exception):
    """SIGTERM came."""


def _leave(_number: int, _frame: object) -> None:
    raise _Leave


def main(how: dict[str, Any]) -> None:
    """Read until told to leave."""
    signal.signal(signal.SIGTERM, _leave)
    with open(how["out"], "w", encoding="utf-8") as out:
        diary = _Diary(out)
        try:
            _algorithm_1(how, diary) if how["protocol"] == ALGORITHM_1 else _modern(how, diary)
        except _Leave:
            pass


def _modern(how: dict[str, Any], diary: _Diary) -> None:
    is_kip_848 = how["protocol"] == KIP_848
    which = "group_remote_assignor" if is_kip_848 else "partition_assignment_strategy"
    with GroupConsumer(
        {which: _ASSIGNORS[how["protocol"]]},
        bootstrap_servers=how["modern"],
        group_id=GROUP,
        group_protocol="consumer" if is_kip_848 else "classic",
        client_id=how["name"],
        session_timeout_ms=int(how["session_s"] * 1000),
        heartbeat_interval_ms=int(HEARTBEAT_S * 1000),
        auto_commit_interval_ms=int(COMMIT_S * 1000),
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.subscribe([TOPIC], diary)
        while True:
            for record in consumer.poll(0.2):
                diary.write("read", record.partition, offset=record.offset)


def _algorithm_1(how: dict[str, Any], diary: _Diary) -> None:
    journal = Journal()

    def note(entry: Entry) -> None:
        if isinstance(entry.event, (Claimed, Released)):
            what = "began" if isinstance(entry.event, Claimed) else "ended"
            diary.write(what, int(str(entry.event.partition).rpartition("-")[2]))

    journal.subscribe(note)
    with Consumer(
        how["zookeeper"], GROUP, autocommit_interval_s=COMMIT_S, session_timeout_s=how["session_s"], journal=journal
    ) as consumer:
        (stream,) = consumer.create_message_streams(TOPIC, 1)
        for message in stream:
            diary.write("read", message.partition.partition, offset=message.offset)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
