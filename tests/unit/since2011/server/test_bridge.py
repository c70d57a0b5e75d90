"""The bridge's own arithmetic, and how it finds where messages begin. See docs/modern-port.md."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock, Cooperator

from kafka2011.errors import MessageTooLarge
from kafka2011.events import Journal
from kafka2011.log.log import Log
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.wire import decode_set, encode_set
from kafka2011.wire.message import Codec
from since2011.era2011.bridge import Bridge, to_messages, to_records
from since2011.era2011.entry_index import EntryIndex
from since2011.era2011.events import OffsetsCrowded
from since2011.wire.batches import decode_batches
from tests.unit.since2011.server.test_batches import LIMIT, built


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log with small segments."""
    store = LogStore(tmp_path / "data", LogSettings(file_size=200_000))
    store.open()
    return store.get_or_create("t", 0)


def fill(log: Log, rng: random.Random, n_messages: int) -> list[int]:
    """Append messages of many sizes; where they begin, and the end."""
    starts = []
    for _ in range(n_messages):
        start, _ = log.append(encode_set([rng.randbytes(rng.choice((0, 5, 100, 3000)))]), 1)
        starts.append(start)
    log.flush()
    return [*starts, log.end_offset]


def found(boundaries: EntryIndex, offset: int) -> int:
    """Run a search to its end."""
    search = boundaries.search(offset)
    while True:
        try:
            next(search)
        except StopIteration as done:
            start: int = done.value
            return start


def test_the_start_of_any_offset_is_found(log: Log) -> None:
    """From whatever is known, a search ends at the message around the offset, across segments and strides (§1.7)."""
    rng = random.Random(1)
    starts = fill(log, rng, 3000)
    boundaries = EntryIndex(log)

    for _ in range(300):
        at = rng.randrange(len(starts) - 1)
        offset = rng.randrange(starts[at], starts[at + 1])
        assert found(boundaries, offset) == starts[at]
        assert boundaries.is_known(starts[at])
    assert len(log.segments()) > 5


def at_once(work: Callable[[], Any]) -> Deferred[Any]:
    """A thread that is done before it is asked."""
    return succeed(work())


def read(bridge: Bridge, clock: Clock, log: Log, offset: int, size: int) -> list[tuple[int, bytes]]:
    """What a fetch gives, as (offset, value)."""
    from kafka.record import MemoryRecords

    answers: list[bytes] = []
    Deferred.fromCoroutine(bridge.read(log, offset, size)).addCallback(answers.append)
    for _ in range(1000):
        if not answers:
            clock.advance(0.01)
    batch = MemoryRecords(answers[0]).next_batch()
    return [(record.offset, record.value) for record in batch]


def test_reading_on_from_each_last_record_gives_everything_once(log: Log) -> None:
    """Asking for last offset + 1 again and again, as every client does, walks the whole log (§1.7)."""
    rng, clock = random.Random(2), Clock()
    starts = fill(log, rng, 400)
    wrapped = log.append(encode_set([b"in %d" % n for n in range(50)], codec=Codec.GZIP), 50)
    log.flush()
    bridge = Bridge(Cooperator(scheduler=lambda step: clock.callLater(0, step)), Journal(), at_once)

    offset, values = 0, []
    for _ in range(len(starts) + 50):
        if offset >= log.flushed_offset:
            break
        records = read(bridge, clock, log, offset, rng.choice((10, 500, 20_000)))
        values += [value for _, value in records]
        offset = records[-1][0] + 1

    assert len(starts) - 1 + 50 == len(values)
    assert [b"in %d" % n for n in range(50)] == values[-50:]
    assert wrapped[1] == offset


def test_messages_in_a_wrapper_get_its_last_positions() -> None:
    """n messages in a wrapper that ends at e have the offsets e − n … e − 1 (§1.7)."""
    data = encode_set([b"alone"]) + encode_set([b"a", b"b", b"c"], codec=Codec.GZIP)
    end = len(data)

    assert [(14, b"alone"), (end - 3, b"a"), (end - 2, b"b"), (end - 1, b"c")] == to_records(decode_set(data))


def test_a_wrapper_with_more_messages_than_bytes_is_told_of(log: Log) -> None:
    """Where offsets run out some records share one, nothing is left out, and the journal says so (§1.7)."""
    log.append(encode_set([b""] * 5000, codec=Codec.GZIP), 5000)
    log.flush()
    journal, clock = Journal(), Clock()
    bridge = Bridge(Cooperator(scheduler=lambda step: clock.callLater(0, step)), journal, at_once)

    records = read(bridge, clock, log, 0, 1 << 20)

    assert len(records) == 5000
    assert isinstance(journal.since()[-1].event, OffsetsCrowded)


def test_batches_become_messages() -> None:
    """Values become payloads, null an empty one; one over the limit refuses them all (§1.7)."""
    (batch,) = decode_batches(built([b"x", None, b"yy"], key=b"k"), LIMIT)

    stored = to_messages(batch, 100)

    assert [m.payload for m in decode_set(stored.data)] == [b"x", b"", b"yy"]
    assert stored.first_offset(500) == 500 + 10
    with pytest.raises(MessageTooLarge):
        to_messages(batch, 1)


def test_an_answer_is_bounded_by_what_it_inflates_to(log: Log) -> None:
    """Issue 19 B2: two hundred wrappers of a megabyte each come in many answers, each of a few, none left out."""
    wrapper = encode_set([bytes(990)] * 1000, codec=Codec.GZIP)
    for _ in range(20):
        log.append(wrapper, 1000)
    log.flush()
    clock = Clock()
    asked: list[str] = []

    def in_a_thread(work: Callable[[], Any]) -> Deferred[Any]:
        asked.append("work")
        return succeed(work())

    bridge = Bridge(Cooperator(scheduler=lambda step: clock.callLater(0, step)), Journal(), in_a_thread)
    offset, sizes = 0, []
    while offset < log.flushed_offset:
        records = read(bridge, clock, log, offset, 2 << 20)
        sizes.append(sum(len(value) for _, value in records))
        offset = records[-1][0] + 1

    assert sum(sizes) == 20 * 990 * 1000
    assert max(sizes) < 4 << 20
    assert len(asked) == len(sizes), "none of it was done on the network's thread"


def test_plain_messages_are_served_where_they_are_asked_for(log: Log) -> None:
    """Issue 19 B2: what is quick needs no thread, and wrappers of a few messages are quick."""
    log.append(encode_set([b"x" * 100] * 500), 500)
    log.append(encode_set([b"y" * 100] * 500, codec=Codec.GZIP), 500)
    log.flush()

    def never(work: Callable[[], Any]) -> Deferred[Any]:
        raise AssertionError("a thread for this")

    clock = Clock()
    bridge = Bridge(Cooperator(scheduler=lambda step: clock.callLater(0, step)), Journal(), never)
    assert len(read(bridge, clock, log, 0, 1 << 20)) == 1000
