"""``__transaction_state`` as the coordinator writes and reads it: an ordinary compacted topic.

A change of a transactional id is one batch in the partition of the id, and takes effect when it is as safe as acks=all
makes it: with the topic's ``flush.messages=1``, which it is created with, when it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from kafka2011.clock import Clock
from kafka2011.errors import InvalidRequest, LogError, RequestTimedOut
from since2011.log.log import ModernLog
from since2011.log.validation import Prepared
from since2011.replication.leading import Leading
from since2011.replication.led import Led
from since2011.server.appending import Appending
from since2011.server.modern_topics import ModernTopics
from since2011.topics.internal import TRANSACTIONS_TOPIC
from since2011.transactions.transaction import Transaction
from since2011.wire.compression import decompress
from since2011.wire.record_batch import checked_header, headers
from since2011.wire.records import Record, decode_records, encode_records
from since2011.wire.transaction_records import decode_transaction_key, encode_transaction_key

_SETTINGS = {
    "cleanup.policy": "compact",
    "compression.type": "uncompressed",
    "segment.bytes": str(100 << 20),
    "unclean.leader.election.enable": "false",
}
_CHUNK = 1 << 20
_MOST_INFLATED = 64 << 20
Unreadable = Callable[[bytes | None, str], None]


def settings(n_replicas: int) -> dict[str, str]:
    """What the topic is created with."""
    if n_replicas == 1:
        # Without replicas the disk is all there is: a decision that was answered survives a power cut.
        return _SETTINGS | {"flush.messages": "1"}
    return _SETTINGS | {"min.insync.replicas": "2" if n_replicas > 2 else "1"}


class NotLed(LogError):
    """Another broker leads this partition, or what it holds is not read yet."""


class StateLog:
    """The partitions this broker speaks for. Thread: reactor."""

    def __init__(self, topics: ModernTopics, leading: Leading, appending: Appending, clock: Clock) -> None:
        self._topics, self._leading, self._appending, self._clock = topics, leading, appending, clock
        self._served: dict[int, Led] = {}

    def may_answer(self, number: int) -> bool:
        """Whether nobody else can speak for the partition by now (design D22)."""
        led = self._served.get(number)
        return led is not None and self._leading.may_answer(led)

    def leave(self, number: int) -> None:
        """Write nothing more there."""
        self._served.pop(number, None)

    def append(self, number: int, transactional_id: str, value: Transaction | None) -> Deferred[None] | None:
        """Write one record; None if nobody has to wait for the disk. Raises Kafka2011Error: nothing is kept then."""
        led = self._served.get(number)
        if led is None:
            raise NotLed(f"the transactions of partition {number} are not spoken for here")
        record = Record(
            0,
            self._clock.wall_ms(),
            encode_transaction_key(transactional_id),
            None if value is None else value.encode(),
        )
        return self._appending.append(led, Prepared(bytearray(encode_records([record]))))

    async def read(
        self, number: int, is_wanted: Callable[[], bool], unreadable: Unreadable
    ) -> dict[str, Transaction] | None:
        """The last record of every id, once it is committed, and from then on write; None: it is not wanted any more.

        Raises Kafka2011Error when this broker has no log of it, or cannot read it.
        """
        led = self._topics.led(TRANSACTIONS_TOPIC, number)
        log, found = led.log, {}
        if log is not None and log.log_end_offset > log.log_start_offset:
            found = await deferToThread(replay, log, is_wanted, unreadable)
        while is_wanted() and (settling := self._leading.settled(led)) is not None:
            with suppress(RequestTimedOut):
                await settling
                led = self._topics.led(TRANSACTIONS_TOPIC, number)
        if not is_wanted():
            return None
        self._served[number] = self._topics.led(TRANSACTIONS_TOPIC, number)
        return found


def replay(log: ModernLog, is_wanted: Callable[[], bool], unreadable: Unreadable) -> dict[str, Transaction]:
    """Read everything below the end; stop early when nobody wants it any more. Thread: any.

    A record that cannot be read is told and passed over; damage of the log raises InvalidMessage.
    """
    found: dict[str, Transaction] = {}
    offset, end = log.log_start_offset, log.log_end_offset
    while is_wanted() and (part := log.locate(offset, _CHUNK, end)) is not None:
        data = part.read()
        for position, _ in headers(data):
            header = checked_header(data, position)
            offset = header.next_offset
            if header.control:
                continue
            batch = data[position : position + header.size]
            for record in decode_records(batch, header, partial(decompress, limit=_MOST_INFLATED)):
                try:
                    _take(found, record)
                except (InvalidRequest, ValueError) as error:
                    unreadable(record.key, str(error))
    return found


def _take(found: dict[str, Transaction], record: Record) -> None:
    transactional_id = decode_transaction_key(record.key or b"")
    if record.value is None:
        found.pop(transactional_id, None)
    else:
        found[transactional_id] = Transaction.decode(transactional_id, record.value)
