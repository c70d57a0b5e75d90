"""Read by offset: no group, no registry, the caller keeps the offsets. Rewinding is asking for an earlier one.

    with SimpleConsumer("127.0.0.1", 9092) as consumer:
        for message in consumer.messages("topic1", 0, consumer.earliest("topic1", 0)):
            handle(message.payload, message.next_offset)

Paper: §3.1 ("a consumer can deliberately rewind back to an old offset and re-consume data").
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile
from types import TracebackType

from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import (
    ConfigError,
    InvalidMessage,
    InvalidMessageSize,
    Kafka2011Error,
    MessageTooLarge,
    WireError,
)
from kafka2011.wire import (
    DEFAULT_LIMITS,
    EARLIEST,
    LATEST,
    FetchRequest,
    Limits,
    MessageAndOffset,
    ReadSet,
    decode_set,
    read_set,
)

_IDLE_S = 0.1


class SimpleConsumer:
    """A reader of one broker. Thread: one at a time."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = 30.0,
        max_fetch_size: int = 64 << 20,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._connection = BrokerConnection(host, port, timeout_s=timeout_s, clock=clock)
        self._max_fetch_size, self._limits, self._clock = max_fetch_size, limits, clock

    def __enter__(self) -> SimpleConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request would open it again."""
        self._connection.close()

    def fetch(self, topic: str, partition: int, offset: int, fetch_size: int = 1 << 20) -> list[MessageAndOffset]:
        """The messages at ``offset``, as many as fit; none at the end of the log.

        None either for a topic nobody has written to: to a broker of 2011 that is an empty one. A message larger than
        ``fetch_size`` is fetched with as much as it needs, up to ``max_fetch_size``.
        """
        return list(self._fetch(topic, partition, offset, fetch_size)[0])

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[list[MessageAndOffset] | Kafka2011Error]:
        """Several fetches in one request; each answer is its messages, or its error."""
        answers = self._connection.multifetch(fetches)
        return [
            answer if isinstance(answer, Kafka2011Error) else decode_set(answer, request.offset, limits=self._limits)
            for request, answer in zip(fetches, answers, strict=True)
        ]

    def messages(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        fetch_size: int = 1 << 20,
        until: int | None = None,
        follow: bool = True,
    ) -> Iterator[MessageAndOffset]:
        """Every message from ``offset`` on: for ever, up to ``until``, or (not ``follow``) up to the end of the log."""
        found: Iterable[MessageAndOffset] = chain.from_iterable(
            self._sets(topic, partition, offset, fetch_size, until, follow)
        )
        return iter(found) if until is None else takewhile(lambda message: message.offset < until, found)

    def _sets(
        self, topic: str, partition: int, offset: int, fetch_size: int, until: int | None, follow: bool
    ) -> Iterator[ReadSet]:
        while until is None or offset < until:
            found, more = self._fetch(topic, partition, offset, fetch_size)
            offset += found.size
            if found.size:
                if more and (until is None or offset < until):
                    # The broker sends the next set while the caller is busy with this one.
                    self._connection.fetch_ahead(FetchRequest(topic, partition, offset, fetch_size))
                yield found
            elif follow:
                self._clock.sleep(_IDLE_S)
            else:
                return

    def offsets(self, topic: str, partition: int, time_ms: int = LATEST, max_offsets: int = 1) -> list[int]:
        """Offsets of segments begun before a time, newest first (docs/log.md)."""
        return self._connection.offsets(topic, partition, time_ms, max_offsets)

    def earliest(self, topic: str, partition: int) -> int:
        """The first offset the broker still has."""
        return (self.offsets(topic, partition, EARLIEST) or [0])[0]

    def latest(self, topic: str, partition: int) -> int:
        """The offset after the last message that may be read."""
        return (self.offsets(topic, partition, LATEST) or [0])[0]

    def _fetch(self, topic: str, partition: int, offset: int, size: int) -> tuple[ReadSet, bool]:
        """The messages, and whether there were more than fit: then the log goes on for sure."""
        _check_partition(topic, partition)
        while True:
            data = self._connection.fetch_view(FetchRequest(topic, partition, offset, size))
            try:
                return read_set(data, offset, limits=self._limits), len(data) == size
            except InvalidMessage as error:
                raise _not_there(topic, partition, offset, error) from error
            except InvalidMessageSize as error:
                if len(data) < size:
                    raise _not_there(topic, partition, offset, error) from error
                if size >= self._max_fetch_size:
                    raise MessageTooLarge(
                        f"the message at offset {offset} of {topic}-{partition} does not fit into {size} bytes; "
                        "raise max_fetch_size"
                    ) from None
                size = min(2 * size, self._max_fetch_size)


def _check_partition(topic: str, partition: object) -> None:
    """A partition here is a number of one broker; elsewhere it is written with its broker's, as in ``0-1``."""
    if isinstance(partition, int):
        return
    broker, dash, number = str(partition).partition("-")
    hint = f"{partition} is partition {number} of broker {broker}: connect to that one" if dash else "it is a number"
    raise ConfigError(f"{topic}: partition {partition!r} cannot be asked for; {hint}")


def _not_there(topic: str, partition: int, offset: int, error: WireError) -> WireError:
    return type(error)(
        f"no message can be read at offset {offset} of {topic}-{partition} ({error}): none begins there, or it is "
        "damaged. Begin at earliest(), at latest(), or at the next_offset of a message"
    )


class Checkpoint:
    """For a consumer with a store of its own: the offset to restart from, the smallest one not flushed there (§3.1).

    Call ``took`` when a message is read and ``flushed`` when the store has made it durable, in any order.
    """

    def __init__(self, offset: int) -> None:
        self._next = offset
        self._open: list[int] = []
        self._done: dict[int, int] = {}

    def took(self, message: MessageAndOffset) -> None:
        """A message was read and is on its way into the store."""
        heapq.heappush(self._open, message.offset)
        self._next = max(self._next, message.next_offset)

    def flushed(self, message: MessageAndOffset) -> None:
        """The store has it for good."""
        self._done[message.offset] = self._done.get(message.offset, 0) + 1
        while self._open and self._done.get(self._open[0]):
            offset = heapq.heappop(self._open)
            self._done[offset] -= 1
            if not self._done[offset]:
                del self._done[offset]

    @property
    def offset(self) -> int:
        """Restart here: everything before it is in the store."""
        return self._open[0] if self._open else self._next
