"""Which batches of an idempotent producer are new, which were written before, which cannot be told: pure rules.

The paper's producer has no answer to a lost acknowledgement: send again, and the message may be there twice (§3.3
leaves that to the application). Today a producer has an id and numbers its records per partition; the broker
remembers the last five batches of each, which is as many as a producer may have under way.

See docs/modern-port.md.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from since2011.wire.error_codes import ErrorCode

WINDOW = 5
"""Batches remembered per producer and partition: the most that can be under way."""

_WRAP = 1 << 31


@dataclass(frozen=True, slots=True)
class Written:
    """One batch of a producer in the log: its sequence numbers, and the bytes ``start`` to ``end`` that hold it."""

    producer_id: int
    epoch: int
    first: int
    last: int
    offset: int
    """What the producer was told: the offset of the batch's first record."""
    start: int
    end: int
    wall_ms: int
    missing: int = 0
    """Bytes at the batch's end that a crash kept out of the log."""

    def is_same_batch(self, epoch: int, first: int, last: int) -> bool:
        """Tell whether these are this batch's numbers."""
        return (self.epoch, self.first, self.last) == (epoch, first, last)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is in the log already; the producer gets the answer it missed, after ``written.missing`` bytes."""

    written: Written


def last_sequence(first: int, n_records: int) -> int:
    """The sequence number of a batch's last record; numbers wrap to 0 after 2³¹ − 1."""
    return (first + n_records - 1) % _WRAP


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=WINDOW))


class RecentProducers:
    """Who wrote last, over all partitions of a broker: when there are too many, who wrote longest ago is forgotten.

    Anybody may ask for producer ids, and each that writes is remembered per partition; this is what bounds the memory.
    A producer that was forgotten may go on writing; only a repetition of what it wrote before would not be noticed.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._order: OrderedDict[tuple[Producers, int], None] = OrderedDict()
        self.n_forgotten = 0

    def __len__(self) -> int:
        return len(self._order)

    def wrote(self, producers: Producers, producer_id: int) -> None:
        """A producer wrote to the partition of ``producers``."""
        self._order[producers, producer_id] = None
        self._order.move_to_end((producers, producer_id))
        if len(self._order) > self._most:
            (longest_ago, forgotten), _ = self._order.popitem(last=False)
            longest_ago.forget(forgotten)
            self.n_forgotten += 1

    def expired(self, producers: Producers, producer_id: int) -> None:
        """It is not remembered there any more."""
        self._order.pop((producers, producer_id), None)


class Producers:
    """What is known of the producers of one partition. Thread: reactor.

    ``in_doubt``: the machine itself went down and bytes of the log survived whose producers were not noted. Then
    nothing but an exact repetition is believed from producer ids of before; see ``check``.
    """

    def __init__(
        self, *, in_doubt: bool = False, expire_ms: int = 86_400_000, recent: RecentProducers | None = None
    ) -> None:
        self.in_doubt = in_doubt
        self._recent = RecentProducers() if recent is None else recent
        self._expire_ms = expire_ms
        self._producers: dict[int, _Producer] = {}

    def check(self, producer_id: int, epoch: int, first: int, last: int, *, fresh: bool) -> Duplicate | ErrorCode:
        """Judge a batch: NONE = append it, Duplicate = answer again, else the error to answer.

        ``fresh``: the id was handed out since this broker started, so it cannot have written before.
        """
        known = self._producers.get(producer_id)
        if known is not None:
            for written in known.batches:
                if written.is_same_batch(epoch, first, last):
                    return Duplicate(written)
            if epoch < known.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.in_doubt and not fresh:
            return ErrorCode.UNKNOWN_PRODUCER_ID
        if known is None:
            return ErrorCode.NONE
        if epoch > known.epoch:
            return ErrorCode.NONE if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        newest = known.batches[-1]
        in_order = first == (newest.last + 1) % _WRAP and not newest.missing
        return ErrorCode.NONE if in_order else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def note(self, written: Written) -> None:
        """Remember a batch that was appended."""
        known = self._producers.get(written.producer_id)
        if known is None or known.epoch != written.epoch:
            known = self._producers[written.producer_id] = _Producer(written.epoch)
        if known.batches and known.batches[-1].is_same_batch(written.epoch, written.first, written.last):
            known.batches.pop()  # the rest of a batch that a crash had cut short
        known.batches.append(written)
        self._recent.wrote(self, written.producer_id)

    def forget(self, producer_id: int) -> None:
        """Remember nothing of a producer any more."""
        self._producers.pop(producer_id, None)

    def expire(self, now_ms: int) -> None:
        """Forget producers that have not written for long."""
        for producer_id, known in list(self._producers.items()):
            if known.batches[-1].wall_ms < now_ms - self._expire_ms:
                self.forget(producer_id)
                self._recent.expired(self, producer_id)

    def remembered(self) -> list[Written]:
        """Every batch still remembered, in log order."""
        return sorted((w for p in self._producers.values() for w in p.batches), key=lambda written: written.start)

    def __len__(self) -> int:
        return len(self._producers)
