"""Carry batches to one broker, and try again only where that cannot do harm.

What happened to a batch when a connection breaks:

    nothing of it was handed to the kernel   -> it did not arrive: try again, at another broker if there is one
    some or all of it was, no ack asked for  -> nobody can know: counted as dropped, never sent twice
    sent, and the acknowledgement is missing -> sent again: with acks a message may be stored twice, never lost

Paper: §5 (the producer does not wait for acknowledgements); the acknowledged produce is not in 2011.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kafka2011.client import BrokerConnection
from kafka2011.errors import CannotConnect, ConnectionFailed, Kafka2011Error, SendBroken
from kafka2011.events import Journal
from kafka2011.producer.batch import Batching, Lane, PendingBatch, payload_of, requests, sets
from kafka2011.producer.counters import Counters
from kafka2011.producer.events import BrokerUnreachable
from kafka2011.types import BrokerAddress
from kafka2011.wire import AckLevel, Codec

Acks = Literal["none", "appended", "flushed", "all"]
OnFull = Literal["block", "drop", "raise"]

_WRITE_SIZE = 256 << 10
"""Larger pieces cost more: their memory is taken from the system and given back each time."""
_ACK_LEVELS = {"appended": AckLevel.APPENDED, "flushed": AckLevel.FLUSHED, "all": AckLevel.ALL}


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
    """Messages the transmitter could not deliver, and why."""

    lane: Lane
    n_messages: int
    error: Kafka2011Error


class Transmitter:
    """The sending half of a producer for one broker. Thread: one at a time."""

    def __init__(
        self,
        address: BrokerAddress,
        settings: ProducerSettings,
        counters: Counters,
        journal: Journal,
        move: Callable[[PendingBatch, int], bool],
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

    def transmit(self, pending: list[PendingBatch], batch_size: int) -> list[GivenUp]:
        """Send everything, ``batch_size`` messages to a request; return what had to be given up."""
        batching = Batching(batch_size, self._settings.codec, self._settings.max_message_size)
        attempt = self._attempt if self._ack_level is None else self._attempt_acked
        given_up: list[GivenUp] = []
        attempts = 0
        while pending:
            pending, error = attempt(pending, batching, given_up)
            if error is None:
                break
            attempts += 1
            self._journal.emit(BrokerUnreachable(broker=str(self.address), error=str(error)))
            pending = [one for one in pending if not self._pass_on(one, attempts, error, given_up)]
        return given_up

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _attempt(
        self, pending: list[PendingBatch], batching: Batching, given_up: list[GivenUp]
    ) -> tuple[list[PendingBatch], Kafka2011Error | None]:
        """Write in order until something fails; return what may be tried again, and the error."""
        pieces = _pieces(pending, batching)
        group: list[PendingBatch] = []
        parts: list[bytes] = []
        size = 0
        for i, piece in enumerate(pieces, 1):
            group.append(piece)
            made = requests(piece, batching)
            parts += made
            size += sum(map(len, made))
            if size < _WRITE_SIZE and i < len(pieces):
                continue
            try:
                self._connection.write(*parts)
            except CannotConnect as error:
                return group + pieces[i:], error
            except SendBroken as error:
                return self._never_left(group, batching, error, given_up) + pieces[i:], error
            self._count(group, batching, size)
            group, parts, size = [], [], 0
        return [], None

    def _never_left(
        self, group: list[PendingBatch], batching: Batching, error: SendBroken, given_up: list[GivenUp]
    ) -> list[PendingBatch]:
        """Sort out a broken write: what the kernel took is given up, the rest is returned."""
        again, position = [], 0
        for lane, items in group:
            done = 0
            for data, n in sets(items, batching):
                if position >= error.accepted:
                    break
                given_up.append(GivenUp(lane, n, error))
                position += len(lane.request(data))
                done += n
            if done < len(items):
                again.append(PendingBatch(lane, items[done:]))
        return again

    def _attempt_acked(
        self, pending: list[PendingBatch], batching: Batching, given_up: list[GivenUp]
    ) -> tuple[list[PendingBatch], Kafka2011Error | None]:
        """As ``_attempt``, waiting for the answer to each request."""
        assert self._ack_level is not None
        for i, (lane, items) in enumerate(pending, 1):
            done = 0
            for data, n in sets(items, batching):
                try:
                    self._connection.produce_acked(lane.topic, lane.partition, data, self._ack_level)
                except Kafka2011Error as error:
                    if error.retriable:
                        return [PendingBatch(lane, items[done:]), *pending[i:]], error
                    given_up.append(GivenUp(lane, n, error))
                else:
                    self._counters.requests += 1
                    self._counters.sent += n
                    self._counters.bytes += len(data)
                done += n
        return [], None

    def _pass_on(
        self, pending_batch: PendingBatch, attempts: int, error: Kafka2011Error, given_up: list[GivenUp]
    ) -> bool:
        """Give messages up, or hand them to another broker; False if they are to be tried here again."""
        lane, items = pending_batch
        if lane.attempts + attempts > self._settings.retries:
            given_up.append(GivenUp(lane, len(items), error))
            return True
        self._counters.retried += len(items)
        # A broker that answered is not passed over; one that cannot be reached is.
        return isinstance(error, ConnectionFailed) and self._move(pending_batch, lane.attempts + attempts)

    def _count(self, pending: Sequence[PendingBatch], batching: Batching, size: int) -> None:
        counters = self._counters
        for _, items in pending:
            counters.requests += -(-len(items) // batching.batch_size)
            counters.sent += len(items)
        counters.bytes += size


def _pieces(pending: list[PendingBatch], batching: Batching) -> list[PendingBatch]:
    """Cut into pieces of about one write each, at the borders of batches: a break then leaves little in doubt."""
    pieces = []
    for lane, items in pending:
        sample = items[:: len(items) // 64 + 1]
        average = sum(len(payload_of(item)) for item in sample) // len(sample) + 10
        step = max(_WRITE_SIZE // average // batching.batch_size, 1) * batching.batch_size
        pieces += [PendingBatch(lane, items[start : start + step]) for start in range(0, len(items), step)]
    return pieces
