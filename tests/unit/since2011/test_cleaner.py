"""Compaction: the latest record of every key stays, offsets never change, whatever is interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka2011 import failpoints
from kafka2011.clock import ManualClock
from since2011.log.cleaner_choice import clean_range, worth_cleaning
from since2011.log.offset_map import ENTRY_BYTES
from since2011.log.settings import LogConfig
from since2011.log.swap import clean_log
from since2011.wire.record_batch import headers
from tests.unit.since2011.bench import Bench, no_codec
from tests.unit.since2011.vectors import T

COMPACT = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=400,
    index_interval_bytes=100,
    delete_retention_ms=3000,
    segment_ms=10**12,
)
STEPS = [
    "modern.clean.after_write",
    "modern.segment.between_renames",
    "modern.clean.after_swap",
    "modern.clean.after_deleted",
    "modern.clean.after_rename",
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(T)


@pytest.fixture
def bench(tmp_path: Path, clock: ManualClock) -> Bench:
    return Bench(tmp_path / "clicks-0", COMPACT, clock)


def clean(bench: Bench, cleaned_to: int | None = None, most_keys: int = 1000) -> int:
    found = clean_range(bench.log, cleaned_to, bench.clock.wall_ms())
    most_bytes = most_keys * ENTRY_BYTES
    end, _ = clean_log(bench.log, found.first_dirty, found.first_uncleanable, no_codec, no_codec, most_bytes=most_bytes)
    return end


def latest(pairs: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in pairs if value is not None}


def fill(bench: Bench, count: int = 40, keys: int = 5) -> None:
    for number in range(count):
        bench.send((b"k%d" % (number % keys), b"v%d" % number))


def test_the_latest_of_every_key_stays_at_its_offset(bench: Bench) -> None:
    """Older records of a key go, the latest keeps its offset; the active segment is not touched.

    See docs/since-2011.md.
    """
    fill(bench)
    before = bench.pairs()
    active = [pair for pair in before if pair[0] >= bench.log.active.base_offset]
    clean(bench)
    after = bench.pairs()

    assert len(after) < len(before)
    assert set(after) <= set(before)
    assert latest(after) == latest(before)
    assert after[-len(active) :] == active
    assert bench.log.log_end_offset == 40
    for offset in range(40):
        assert all(record.offset >= offset for record in bench.records(offset))


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_leaves_the_old_log_or_the_new(bench: Bench, step: str) -> None:
    """Interrupted anywhere, the next start finds the latest value of every key and no offset changed.

    See docs/since-2011.md.
    """
    fill(bench)
    before = bench.pairs()
    with failpoints.activate(step, "raise:EIO"), pytest.raises(OSError, match=r"Input/output|EIO|" + step):
        clean(bench)
    bench.crash()
    after = bench.pairs()

    assert set(after) <= set(before)
    assert latest(after) == latest(before)
    left = [path.name for path in bench.directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    assert left == []
    clean(bench)
    assert latest(bench.pairs()) == latest(before)


def test_a_tombstone_is_kept_for_a_while_and_then_goes(bench: Bench, clock: ManualClock) -> None:
    """A null value deletes its key: kept with a horizon by the first round, gone after it.

    See KIP-534, docs/since-2011.md.
    """
    bench.send((b"x", b"1"), (b"y", b"1"))
    bench.send((b"x", b"2"), (b"y", None))
    bench.log.roll()
    bench.send((b"w", b"1"))
    end = clean(bench)
    assert bench.pairs() == [(2, b"x", b"2"), (3, b"y", None), (4, b"w", b"1")]
    data = bench.log.segments[0].read(0, 10_000)
    (header,) = [header for _, header in headers(data)]
    assert header.delete_horizon_ms == T + 3000
    assert [record.timestamp for record in bench.records()][:2] == [T, T]

    clock.advance(2.9)
    bench.log.roll()
    clean(bench, end)
    assert (3, b"y", None) in bench.pairs()
    clock.advance(0.2)
    clean(bench, end)
    assert bench.pairs() == [(2, b"x", b"2"), (4, b"w", b"1")]


def test_aborted_data_goes_and_its_marker_follows(bench: Bench, clock: ManualClock) -> None:
    """Records of an aborted transaction go at once; the marker stays one round more, then until its horizon (§9.3)."""
    bench.send_in_transaction(1, 0, b"a", b"aborted")
    bench.end(1, commit=False)
    bench.send_in_transaction(1, 1, b"b", b"committed")
    bench.end(1, commit=True)
    bench.log.roll()
    bench.send((b"c", b"1"))
    clean(bench)

    assert bench.pairs() == [(2, b"b", b"committed"), (4, b"c", b"1")]
    assert [len(segment.txn_index.entries) for segment in bench.log.segments] == [1, 0]
    clean(bench, 0)
    assert [len(segment.txn_index.entries) for segment in bench.log.segments] == [0, 0]
    clock.advance(4)
    clean(bench, 0)
    kept = [header.control for _, header in headers(bench.log.segments[0].read(0, 10_000))]
    assert kept == [False, True]
    assert bench.log.last_stable_offset == 5


def test_a_producers_sequence_survives_its_records(bench: Bench) -> None:
    """Where all records of a producer's last batch go, its header stays: a retry is still known.

    See docs/since-2011.md.
    """
    bench.send((b"k", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    bench.send((b"k", b"2"))
    bench.log.roll()
    bench.send((b"z", b"1"))
    clean(bench)
    assert bench.pairs() == [(1, b"k", b"2"), (2, b"z", b"1")]
    bench.log.close()
    for path in bench.directory.glob("*.snapshot"):
        path.unlink()
    bench.log = bench._open(clean=False)
    bench.log.raise_high_watermark(bench.log.log_end_offset)
    again = bench.send((b"k", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)

    assert (again.duplicate, again.first_offset) == (True, 0)


def test_a_map_that_is_full_cleans_what_it_can(bench: Bench) -> None:
    """More keys than fit: the round ends at a batch's border and the next goes on from there (docs/since-2011.md)."""
    fill(bench, 40, keys=20)
    before = latest(bench.pairs())
    end = clean(bench, most_keys=7)
    assert 0 < end < bench.log.active.base_offset
    assert latest(bench.pairs()) == before
    while (more := clean(bench, end, most_keys=7)) > end:
        end = more
    assert latest(bench.pairs()) == before
    assert end == bench.log.active.base_offset


def test_what_is_worth_cleaning(bench: Bench, clock: ManualClock) -> None:
    """By the share of dirty bytes, or by age; never what is young, open or active (docs/since-2011.md)."""
    fill(bench)
    found = clean_range(bench.log, None, clock.wall_ms())
    assert worth_cleaning(bench.log, found)
    assert (found.dirty_ratio, found.first_uncleanable) == (1.0, bench.log.active.base_offset)
    end = clean(bench)
    assert not worth_cleaning(bench.log, clean_range(bench.log, end, clock.wall_ms()))
    bench.send_in_transaction(1, 0, b"a", b"open")
    fill(bench)
    held = clean_range(bench.log, end, clock.wall_ms())
    assert held.first_uncleanable <= 40
