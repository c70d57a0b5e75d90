"""Carry batches to one broker, and try again only where that cannot do harm.

What happened to a batch when a connection breaks:

    nothing of it was handed to the kernel   -> it did not arrive: try again, at another broker if there is one
    some or all of it was, no ack asked for  -> nobody can know: counted as dropped, never sent twice
    sent, and the acknowledgement is missing -> sent again: with acks a message may be stored twice, never lost

Paper: §5 (the producer does not wait for acknowledgements); the acknowledged produce is not in 2011.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kafka2011.client import BrokerConnection, CannotConnect, SendBroken
from kafka2011.errors import ConnectionFailed, Kafka2011Error
from kafka2011.events import Journal
from kafka2011.producer.batch import Batch, collate, compressed, request_size, requests
from kafka2011.producer.counters import Counters
from kafka2011.producer.events import BrokerUnreachable
from kafka2011.types import BrokerAddress
from kafka2011.wire import AckLevel, Codec

Acks = Literal["none", "appended", "flushed"]
OnFull = Literal["block", "drop", "raise"]

_WRITE_SIZE = 1 << 20
_ACK_LEVELS = {"appended": AckLevel.APPENDED, "flushed": AckLevel.FLUSHED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer batches, waits and gives up."""

    batch_size: int
    linger_ms: float
    queue_size: int
    queue_bytes: int
    on_full: OnFull
    codec: Codec
    acks: Acks
    retries: int
    timeout_s: float
    connect_timeout_s: float
    max_message_size: int
    tls: ssl.SSLContext | None


class GivenUp(NamedTuple):
    """A batch the carrier could not deliver, and why."""

    batch: Batch
    error: Kafka2011Error


class Carrier:
    """The sending half of a producer for one broker. Thread: one at a time."""

    def __init__(
        self,
        address: BrokerAddress,
        settings: ProducerSettings,
        counters: Counters,
        journal: Journal,
        move: Callable[[Batch, int], bool],
    ) -> None:
        self.address = address
        self._settings = settings
        self._counters = counters
        self._journal = journal
        self._move = move
        self._ack_level = _ACK_LEVELS.get(settings.acks)
        self._connection = BrokerConnection(
            address.host,
            address.port,
            timeout_s=settings.timeout_s,
            connect_timeout_s=settings.connect_timeout_s,
            tls=settings.tls,
        )

    def carry(self, batches: list[Batch]) -> list[GivenUp]:
        """Send everything; return what had to be given up."""
        settings = self._settings
        left = collate(batches, settings.batch_size)
        if settings.codec is not Codec.NONE:
            left = [compressed(batch, settings.codec, settings.max_message_size) for batch in left]
        given_up: list[GivenUp] = []
        attempts = 0
        while left:
            left, error = self._attempt(left, given_up)
            if error is None:
                break
            attempts += 1
            self._journal.emit(BrokerUnreachable(broker=str(self.address), error=str(error)))
            left = [batch for batch in left if not self._pass_on(batch, attempts, error, given_up)]
        return given_up

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _attempt(self, batches: list[Batch], given_up: list[GivenUp]) -> tuple[list[Batch], Kafka2011Error | None]:
        """Send in order until something fails; return what may be tried again, and the error."""
        send = self._write if self._ack_level is None else self._write_acked
        done = 0
        for group in _groups(batches):
            again, error = send(group, given_up)
            if error is not None:
                return again + batches[done + len(group) :], error
            done += len(group)
        return [], None

    def _write(self, group: Sequence[Batch], given_up: list[GivenUp]) -> tuple[list[Batch], Kafka2011Error | None]:
        data = requests(group)
        try:
            self._connection.write(data)
        except CannotConnect as error:
            return list(group), error
        except SendBroken as error:
            again, position = [], 0
            for batch in group:
                if position < error.accepted:
                    given_up.append(GivenUp(batch, error))
                else:
                    again.append(batch)
                position += request_size(batch)
            return again, error
        self._count(group)
        return [], None

    def _write_acked(
        self, group: Sequence[Batch], given_up: list[GivenUp]
    ) -> tuple[list[Batch], Kafka2011Error | None]:
        assert self._ack_level is not None
        for i, batch in enumerate(group):
            lane, data, _ = batch
            try:
                self._connection.produce_acked(lane.topic, lane.partition, data, self._ack_level)
            except Kafka2011Error as error:
                if error.retriable:
                    return list(group[i:]), error
                given_up.append(GivenUp(batch, error))
            else:
                self._count((batch,))
        return [], None

    def _pass_on(self, batch: Batch, attempts: int, error: Kafka2011Error, given_up: list[GivenUp]) -> bool:
        """Give up a batch, or hand it to another broker; False if it is to be tried here again."""
        lane, _, n = batch
        if lane.attempts + attempts > self._settings.retries:
            given_up.append(GivenUp(batch, error))
            return True
        self._counters.retried += n
        # A broker that answered is not passed over; one that cannot be reached is.
        return isinstance(error, ConnectionFailed) and self._move(batch, lane.attempts + attempts)

    def _count(self, batches: Sequence[Batch]) -> None:
        counters = self._counters
        counters.requests += len(batches)
        for _, data, n in batches:
            counters.sent += n
            counters.bytes += len(data)


def _groups(batches: list[Batch]) -> Iterator[list[Batch]]:
    """Cut into pieces of about one write each, so that a break leaves little in doubt."""
    group: list[Batch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += len(batch[1])
        if size >= _WRITE_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group
