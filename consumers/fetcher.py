"""Pull one broker's partitions in the background: one thread, one connection, one MULTIFETCH at a time.

Each round asks for every partition that is not paused, checks what came, asks for what follows it, and only then hands
the chunks on: the broker sends while the application reads. A dead broker is waited for, never given up. A message
larger than the fetch grows the fetch, up to a limit.

Paper: §3.1 ("each pull request ... typically hundreds of kilobytes"), §3.2, §3.3 (CRC).
Differs: one thread per broker, not per partition (docs/paper-vs-code.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from consumers.events import FetcherBack, FetcherWaiting, OffsetReset, PartitionStuck
from kafka2011.client import BrokerConnection
from kafka2011.errors import (
    InvalidMessage,
    InvalidMessageSize,
    Kafka2011Error,
    MessageTooLarge,
    OffsetOutOfRange,
    PortSpeaksTls,
    UnknownError,
    WireError,
    WrongPartition,
)
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, TopicPartition
from kafka2011.wire import (
    DEFAULT_LIMITS,
    EARLIEST,
    LATEST,
    FetchRequest,
    Limits,
    MessageAndOffset,
    ReadSet,
    read_set,
    readable_bytes,
)
from kafka2011.wire.message import LENGTH

RESET_POLICIES = ("smallest", "largest", "raise")
_SMALLEST_SHARE = 64 * 1024
_IDLE_S, _LONGEST_IDLE_S = 0.002, 0.1
_AWAY_S, _LONGEST_AWAY_S = 0.05, 1.0
_connection = partial(BrokerConnection, connect_timeout_s=1.0)  # short: the fetcher itself waits for a dead broker


class PoisonMessage(Kafka2011Error):
    """Bytes in a partition that are no valid message; reading stays at ``offset`` until told to go elsewhere."""

    def __init__(self, source: TopicPartition, offset: int, next_offset: int | None, reason: str) -> None:
        self.source, self.offset, self.next_offset = source, offset, next_offset
        further = f"seek to {next_offset} to skip it" if next_offset is not None else "its length is not known"
        super().__init__(f"{source} cannot be read at offset {offset}: {reason}; {further}")


@dataclass(frozen=True, slots=True)
class FetchedChunk:
    """One partition's part of one reply: messages from ``offset`` up to ``next_offset``.

    Without messages it tells that the position moved (a missing offset was settled, or one out of range reset).
    """

    source: TopicPartition
    messages: ReadSet | list[MessageAndOffset]
    offset: int
    next_offset: int
    size: int


class _Reading:
    """One partition being read."""

    __slots__ = ("kind", "offset", "paused", "size", "source", "told")

    def __init__(self, source: TopicPartition, offset: int | None, kind: type[MessageAndOffset]) -> None:
        self.source, self.offset, self.kind = source, offset, kind
        self.size = 0  # more than this reading's share, when one message needs it
        self.paused = False
        self.told = False  # that the broker has trouble with it


class Fetcher:
    """Read some partitions of one broker. Thread: any (its own thread does the work).

    ``deliver`` and ``on_error`` are called in the fetcher's thread and must not block: hold back with ``pause``
    (allowed from inside ``deliver``). After ``remove`` has returned, nothing more of those partitions is delivered.
    Messages are of the class that ``kind_of`` gives for their partition.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        deliver: Callable[[FetchedChunk], None],
        on_error: Callable[[TopicPartition, Kafka2011Error], None],
        reset_policy: str = "smallest",
        fetch_size: int = 1 << 20,
        max_fetch_size: int = 64 << 20,
        limits: Limits = DEFAULT_LIMITS,
        kind_of: Callable[[TopicPartition], type[MessageAndOffset]] = lambda source: MessageAndOffset,
        journal: Journal | None = None,
        connect: Callable[[str, int], BrokerConnection] | None = None,
    ) -> None:
        if reset_policy not in RESET_POLICIES:
            raise ValueError(f"reset policy {reset_policy!r}: use one of {', '.join(RESET_POLICIES)}")
        self.address = address
        self._deliver, self._on_error, self._policy = deliver, on_error, reset_policy
        self._fetch_size, self._max_fetch_size, self._limits = fetch_size, max(fetch_size, max_fetch_size), limits
        self._kind_of, self._journal = kind_of, journal or Journal()
        self._connection = (connect or _connection)(address.host, address.port)
        self._readings: dict[TopicPartition, _Reading] = {}
        self._changed = threading.Condition(threading.RLock())
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"fetcher-{address.broker_id}", daemon=True)
        self._thread.start()

    def assign(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Read exactly these; None = no offset is known, the reset policy decides."""
        with self._changed:
            self._readings.clear()
            self.add(offsets)

    def add(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Read these too, from these offsets (also: go on elsewhere in one that is read already)."""
        with self._changed:
            for source, offset in offsets.items():
                self._readings[source] = _Reading(source, offset, self._kind_of(source))
            self._changed.notify()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer."""
        with self._changed:
            for source in partitions:
                self._readings.pop(source, None)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask for no more of these for now."""
        self._set_paused(partitions, True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with these."""
        self._set_paused(partitions, False)

    def stop(self, wait_s: float = 1.0) -> None:
        """Deliver nothing more, end the thread."""
        with self._changed:
            self._stopped = True
            self._readings.clear()
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(wait_s)

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._changed:
            for source in partitions:
                if source in self._readings:
                    self._readings[source].paused = paused
            self._changed.notify()

    def _run(self) -> None:
        try:
            self._pull()
        except Exception as error:
            # Nobody may wait for messages that will not come: whatever it is, the streams say so.
            with self._changed:
                for reading in list(self._readings.values()):
                    told = str(error) if isinstance(error, Kafka2011Error) else repr(error)
                    failure = Kafka2011Error(f"reading {reading.source} from {self.address} failed: {told}")
                    self._stuck(reading, reading.offset or 0, failure)
        finally:
            self._connection.close()

    def _pull(self) -> None:
        idle, away = _IDLE_S, _AWAY_S
        while readings := self._next_round():
            try:
                got = self._round(readings)
            except PortSpeaksTls:
                raise  # waiting would not help: the streams say so
            except (Kafka2011Error, OSError) as error:
                if away == _AWAY_S:
                    self._journal.emit(FetcherWaiting(broker=str(self.address), reason=str(error)))
                self._connection.close()
                self._pause_thread(away)
                away = min(away * 2, _LONGEST_AWAY_S)
                continue
            if away != _AWAY_S:
                self._journal.emit(FetcherBack(broker=str(self.address)))
                away = _AWAY_S
            if got:
                idle = _IDLE_S
            else:
                self._pause_thread(idle)
                idle = min(idle * 2, _LONGEST_IDLE_S)

    def _next_round(self) -> list[_Reading]:
        """What to ask for; waits while there is nothing, returns nothing when stopped."""
        with self._changed:
            while not self._stopped:
                readings = self._unpaused()
                if readings:
                    return readings
                self._changed.wait()
            return []

    def _pause_thread(self, seconds: float) -> None:
        with self._changed:
            if not self._stopped:
                self._changed.wait(seconds)

    def _round(self, readings: list[_Reading]) -> bool:
        """One request for all; True if anything moved."""
        readings = [reading for reading in readings if reading.offset is not None or self._settle(reading)]
        if not readings:
            return False
        requests = self._requests(readings)
        answers = self._connection.multifetch(requests)
        chunks: list[tuple[_Reading, FetchedChunk]] = []
        moved = [
            self._answered(reading, request, answer, chunks)
            for reading, request, answer in zip(readings, requests, answers, strict=True)
        ]
        if chunks:
            self._connection.multifetch_ahead(self._requests(self._unpaused()))
        for reading, chunk in chunks:
            self._hand_on(reading, chunk)
        return any(moved)

    def _unpaused(self) -> list[_Reading]:
        """What the next round will ask for, if nothing changes until then."""
        with self._changed:
            return [reading for reading in self._readings.values() if not reading.paused]

    def _requests(self, readings: list[_Reading]) -> list[FetchRequest]:
        share = max(min(_SMALLEST_SHARE, self._fetch_size), self._fetch_size // max(len(readings), 1))
        return [
            FetchRequest(reading.source.topic, reading.source.partition, reading.offset or 0, max(share, reading.size))
            for reading in readings
        ]

    def _settle(self, reading: _Reading) -> bool:
        """No offset is stored: begin at the smallest or largest the broker has (§3.2). False = not to be asked now."""
        source = reading.source
        if self._policy == "raise":
            reason = "no offset is stored and the reset policy is 'raise'"
            self._stuck(reading, 0, PoisonMessage(source, 0, None, reason))
            return False
        time_ms = EARLIEST if self._policy == "smallest" else LATEST
        try:
            found = self._connection.offsets(source.topic, source.partition, time_ms)
        except UnknownError as error:
            return self._not_now(reading, error)
        return self._jump(reading, found[0] if found else 0)

    def _not_now(self, reading: _Reading, error: Kafka2011Error) -> bool:
        """The broker has trouble with this partition alone (it may be offline): asked again, the others go on."""
        if not reading.told:
            reading.told = True
            self._journal.emit(FetcherWaiting(broker=str(self.address), reason=str(error)))
        return False

    def _answered(
        self,
        reading: _Reading,
        request: FetchRequest,
        answer: memoryview | Kafka2011Error,
        chunks: list[tuple[_Reading, FetchedChunk]],
    ) -> bool:
        """Check one partition's answer, add what is to be handed on to ``chunks``; True if anything moved."""
        source, offset = reading.source, request.offset
        if isinstance(answer, OffsetOutOfRange):
            if self._policy == "raise":
                self._stuck(reading, offset, answer)
                return True
            to = (answer.first if self._policy == "smallest" else answer.end) or 0
            self._journal.emit(
                OffsetReset(
                    topic=source.topic,
                    partition=source.partition,
                    broker=str(self.address),
                    asked=offset,
                    moved_to=to,
                )
            )
            return self._jump(reading, to)
        if isinstance(answer, WrongPartition):
            return False  # announced but not there yet: asked again after a pause
        if isinstance(answer, UnknownError):
            return self._not_now(reading, answer)
        if isinstance(answer, Kafka2011Error):
            raise answer
        reading.told = False
        if not answer:
            return False
        try:
            messages = read_set(answer, offset, limits=self._limits, kind=reading.kind)
        except (InvalidMessage, InvalidMessageSize) as error:
            good = readable_bytes(answer, self._limits)
            if not good:
                return self._undecodable(reading, request, answer, error)
            messages = read_set(answer[:good], offset, limits=self._limits, kind=reading.kind)
        reading.size = 0
        reading.offset = offset + messages.size
        chunks.append((reading, FetchedChunk(source, messages, offset, reading.offset, len(answer))))
        return True

    def _undecodable(self, reading: _Reading, request: FetchRequest, data: memoryview, error: WireError) -> bool:
        """Grow the fetch for a message cut off, or say where the bad one is."""
        offset = request.offset
        size = 4 + LENGTH.unpack_from(data)[0] if len(data) >= 4 else request.max_size + 1
        if size > len(data) >= request.max_size:
            if size <= self._max_fetch_size:
                reading.size = size
                return True
            too_large = MessageTooLarge(
                f"the message at offset {offset} of {reading.source} has {size} bytes, more than the fetch limit of "
                f"{self._max_fetch_size}; raise max_fetch_size, or seek to {offset + size} to skip it"
            )
            self._stuck(reading, offset, too_large)
            return True
        beyond = offset + size if 4 < size <= len(data) else None
        self._stuck(reading, offset, PoisonMessage(reading.source, offset, beyond, str(error)))
        return True

    def _jump(self, reading: _Reading, offset: int) -> bool:
        reading.offset = offset
        return self._hand_on(reading, FetchedChunk(reading.source, [], offset, offset, 0))

    def _hand_on(self, reading: _Reading, chunk: FetchedChunk) -> bool:
        with self._changed:
            if self._readings.get(reading.source) is not reading:
                return False  # given up, or sent elsewhere, while the request was under way
            self._deliver(chunk)
            return True

    def _stuck(self, reading: _Reading, offset: int, error: Kafka2011Error) -> None:
        with self._changed:
            if self._readings.get(reading.source) is reading:
                del self._readings[reading.source]
                source = reading.source
                self._journal.emit(
                    PartitionStuck(topic=source.topic, partition=source.partition, offset=offset, reason=str(error))
                )
                self._on_error(source, error)
