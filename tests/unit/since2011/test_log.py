"""The modern log: what is appended is read back, after a clean stop, after a crash, after a cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import LogCorrupt, LogFailed, OffsetOutOfRange
from since2011.log import checkpoint
from since2011.log.damage import accept_damage
from since2011.log.events import DamageSetAside, IndexRebuilt, TornTailCut
from since2011.log.indexes import Aborted, OffsetIndex, TimeIndex, TxnIndex
from since2011.log.leader_epochs import LeaderEpochs
from since2011.log.producer_state import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence, ProducerEntry
from since2011.log.retention import apply_retention
from since2011.log.settings import LogConfig
from since2011.log.snapshot import decode_snapshot, encode_snapshot
from since2011.log.time_search import first_at_or_after, largest_timestamp
from since2011.log.truncation import truncate_to
from tests.unit.since2011.bench import SMALL, Bench, no_codec
from tests.unit.since2011.vectors import (
    V10_INDEX,
    V11_TIME_INDEX,
    V12_TXN_INDEX,
    V13_SNAPSHOT,
    V13B_EMPTY_SNAPSHOT,
    V14_EPOCHS,
    T,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "clicks-0")


def fill(bench: Bench, count: int = 30) -> None:
    for number in range(count):
        bench.send((b"k%d" % (number % 5), b"v%d" % number), at=T + number)


# -- files, byte by byte ------------------------------------------------------------------------------------------


def test_index_files_are_kafkas(tmp_path: Path) -> None:
    """The three indexes have Kafka's bytes, and are read back (docs/since-2011.md)."""
    index = OffsetIndex(tmp_path / "a.index", 100, 1000)
    index.load()
    index.append(140, 4200)
    index.append(201, 8500)
    times = TimeIndex(tmp_path / "a.timeindex", 100, 1000)
    times.load()
    for time, offset in ((T, 140), (T, 150), (T + 5, 201)):
        times.maybe_append(time, offset)
    aborted = TxnIndex(tmp_path / "a.txnindex")
    for entry in (Aborted(4711, 120, 151, 152), Aborted(4712, 130, 160, 120)):
        aborted.append(entry)

    assert (tmp_path / "a.index").read_bytes() == V10_INDEX
    assert (tmp_path / "a.timeindex").read_bytes() == V11_TIME_INDEX
    assert (tmp_path / "a.txnindex").read_bytes() == V12_TXN_INDEX
    again = TxnIndex(tmp_path / "a.txnindex")
    again.load(100)
    assert again.entries == aborted.entries
    assert [index.position_of(offset) for offset in (100, 139, 140, 200, 201, 999)] == [0, 0, 4200, 4200, 8500, 8500]


def test_snapshots_are_kafkas() -> None:
    """A snapshot of producers has Kafka's bytes; a damaged one is named (docs/since-2011.md)."""
    producers = decode_snapshot(V13_SNAPSHOT, "x")

    assert encode_snapshot(producers) == V13_SNAPSHOT
    assert encode_snapshot(()) == V13B_EMPTY_SNAPSHOT
    assert [(pid, entry.epoch, entry.last_sequence) for pid, entry in producers] == [
        (4711, 3, 44),
        (4712, 0, 0),
        (4713, 1, -1),
    ]
    for place in range(len(V13_SNAPSHOT)):
        damaged = bytearray(V13_SNAPSHOT)
        damaged[place] ^= 1
        with pytest.raises(LogCorrupt):
            decode_snapshot(bytes(damaged), "x")


def test_epoch_files_are_kafkas(tmp_path: Path) -> None:
    """Leader epochs have Kafka's text, and answer where a history ended (docs/since-2011.md)."""
    epochs = LeaderEpochs(tmp_path)
    epochs.assign(0, 0)
    epochs.assign(3, 120)
    epochs.assign(3, 130)

    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == V14_EPOCHS
    assert [epochs.end_offset(epoch, 200) for epoch in (-1, 0, 1, 2, 3, 4)] == [
        (-1, -1),
        (0, 120),
        (0, 120),
        (0, 120),
        (3, 200),
        (-1, -1),
    ]
    epochs.raise_start(50)
    assert epochs.entries == [(0, 50), (3, 120)]
    epochs.truncate_end(120)
    assert epochs.entries == [(0, 50)]


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\na 0 1\n", "0\n1\na zero 1\n", "0\n1\na 0\n", "0\nx\n"])
def test_a_checkpoint_that_cannot_be_is_named(tmp_path: Path, text: str) -> None:
    """A malformed checkpoint is an error that names the file, never a guess (docs/since-2011.md)."""
    (tmp_path / "recovery-point-offset-checkpoint").write_text(text)
    with pytest.raises(LogCorrupt, match="recovery-point-offset-checkpoint"):
        checkpoint.read_offsets(tmp_path / "recovery-point-offset-checkpoint")


def test_checkpoints_come_back(tmp_path: Path) -> None:
    """What is written is read; an empty file has no entries."""
    path = tmp_path / "x"
    checkpoint.write_offsets(path, {("b", 1): 5, ("a", 0): 7})

    assert path.read_text() == "0\n2\na 0 7\nb 1 5\n"
    assert checkpoint.read_offsets(path) == {("b", 1): 5, ("a", 0): 7}
    path.write_text("")
    assert checkpoint.read_offsets(path) == {}


# -- a log --------------------------------------------------------------------------------------------------------


def test_offsets_are_dense_and_every_record_comes_back(bench: Bench) -> None:
    """Records are numbered 0, 1, 2, …, over many segments, and read back equal (docs/since-2011.md)."""
    fill(bench)

    assert len(bench.log.segments) > 3
    assert bench.pairs() == [(n, b"k%d" % (n % 5), b"v%d" % n) for n in range(30)]
    assert [record.timestamp for record in bench.records()] == [T + n for n in range(30)]
    for offset in range(30):
        assert bench.records(offset)[0].offset == offset


def test_a_clean_stop_leaves_nothing_to_repair(bench: Bench) -> None:
    """After a clean stop nothing is rebuilt, and offsets go on where they were (docs/since-2011.md)."""
    fill(bench)
    bench.restart()
    bench.send((b"k", b"after"))

    assert bench.pairs()[-1] == (30, b"k", b"after")
    assert [entry.event for entry in bench.journal.since() if isinstance(entry.event, IndexRebuilt)] == []


def test_a_crash_rebuilds_what_the_disk_may_not_have(bench: Bench) -> None:
    """After a crash the indexes beyond the recovery point are made from the log and find the same.

    See docs/since-2011.md.
    """
    fill(bench)
    before = [(list(s.index.offsets), s.largest_timestamp) for s in bench.log.segments]
    for segment in bench.log.segments:
        segment.index._file.path.write_bytes(b"\0" * 40)
    bench.crash()

    assert bench.pairs() == [(n, b"k%d" % (n % 5), b"v%d" % n) for n in range(30)]
    assert [(list(s.index.offsets), s.largest_timestamp) for s in bench.log.segments] == before
    rebuilt = [entry.event for entry in bench.journal.since() if isinstance(entry.event, IndexRebuilt)]
    assert len(rebuilt) == len(bench.log.segments)


def test_a_torn_tail_is_cut_at_any_byte(tmp_path: Path) -> None:
    """Whatever part of the last batch reached the disk, everything before it is there and nothing else.

    See docs/since-2011.md.
    """
    for cut in range(1, 71, 3):
        bench = Bench(tmp_path / str(cut))
        fill(bench, 3)
        size = bench.log.active.size
        bench.log.active.cut(size - cut)
        bench.crash()

        assert [offset for offset, _, _ in bench.pairs()] == [0, 1]
        (torn,) = [e.event for e in bench.journal.since() if isinstance(e.event, TornTailCut)]
        assert torn.offset == 2
        bench.send((b"k", b"new"))
        assert bench.pairs()[-1] == (2, b"k", b"new")


def test_damage_in_the_middle_is_kept_and_nothing_is_appended(bench: Bench) -> None:
    """Good batches after damage are set aside, not lost; those before are served; appends are refused."""
    fill(bench)
    victim = bench.log.segments[1]
    place = victim.find(victim.base_offset + 1)
    assert place is not None
    data = bytearray(victim.read(0, victim.size))
    data[place.position + 65] ^= 0xFF
    victim.path.write_bytes(data)
    good = victim.base_offset + 1
    bench.crash()

    assert [offset for offset, _, _ in bench.pairs()] == list(range(good))
    (event,) = [e.event for e in bench.journal.since() if isinstance(e.event, DamageSetAside)]
    assert event.offset == good
    kept = b"".join((bench.directory / name).read_bytes() for name in event.files if ".log" in name)
    assert all(b"v%d" % n in kept for n in range(good + 1, 30))
    with pytest.raises(LogFailed, match="set aside"):
        bench.send((b"k", b"v"))


def test_offsets_outside_the_log_are_refused(bench: Bench) -> None:
    """Below the start and beyond the end is out of range; at the end there is nothing yet (docs/since-2011.md)."""
    fill(bench, 10)
    assert bench.log.raise_log_start(4)

    assert bench.log.locate(10, 100, 10) is None
    for offset in (3, 11, -1):
        with pytest.raises(OffsetOutOfRange):
            bench.log.locate(offset, 100, 10)
    assert [offset for offset, _, _ in bench.pairs()] == [4, 5, 6, 7, 8, 9]


def test_a_large_first_batch_is_given_whole(bench: Bench) -> None:
    """A reader that asks for one byte gets one whole batch, unless another partition came first.

    See docs/since-2011.md.
    """
    bench.send((b"k", b"x" * 200))
    part = bench.log.locate(0, 1, bench.log.log_end_offset)

    assert part is not None and part.size == bench.log.active.size
    assert bench.log.locate(0, 1, bench.log.log_end_offset, at_least_one=False) is None


def test_nobody_reads_beyond_the_watermark(bench: Bench) -> None:
    """A read ends at the batch that holds the high watermark (docs/since-2011.md)."""
    fill(bench, 6)
    part = bench.log.locate(0, 10_000, 4)

    assert part is not None
    assert part.segment.read(part.position, part.size).count(b"v") == 4


# -- producers and transactions -----------------------------------------------------------------------------------


def idempotent(bench: Bench, sequence: int, epoch: int = 0) -> tuple[int, bool]:
    appended = bench.send((b"k", b"v"), producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    return appended.first_offset, appended.duplicate


@pytest.mark.parametrize("between", ["nothing", "restart", "crash"])
def test_a_retry_is_stored_once(bench: Bench, between: str) -> None:
    """A batch sent again is answered with its first offset, also after a restart or a crash (docs/since-2011.md)."""
    assert [idempotent(bench, n) for n in range(3)] == [(0, False), (1, False), (2, False)]
    if between != "nothing":
        getattr(bench, between)()

    assert idempotent(bench, 2) == (2, True)
    with pytest.raises(OutOfOrderSequence, match="3 comes next"):
        idempotent(bench, 4)
    assert idempotent(bench, 3) == (3, False)
    assert idempotent(bench, 0, epoch=1) == (4, False)
    with pytest.raises(InvalidProducerEpoch):
        idempotent(bench, 4)
    assert len(bench.pairs()) == 5


def test_five_batches_are_remembered(bench: Bench) -> None:
    """The last five batches of a producer are known as duplicates, the sixth is out of order (docs/since-2011.md)."""
    for sequence in range(6):
        idempotent(bench, sequence)

    assert [idempotent(bench, n) for n in range(1, 6)] == [(n, True) for n in range(1, 6)]
    with pytest.raises(OutOfOrderSequence):
        idempotent(bench, 0)


def test_five_batches_are_remembered_after_a_crash(bench: Bench) -> None:
    """Answers of five batches in flight are lost with the broker; all five are known when they come again (KIP-98)."""
    for sequence in range(12):
        idempotent(bench, sequence)
    bench.crash()

    assert [idempotent(bench, n) for n in range(7, 12)] == [(n, True) for n in range(7, 12)]
    assert idempotent(bench, 12) == (12, False)


def test_an_open_transaction_holds_back_the_last_stable_offset(bench: Bench) -> None:
    """Until a transaction ends, readers of committed records stop before it; an abort is in the index.

    See docs/since-2011.md.
    """
    bench.send((b"a", b"0"))
    bench.send_in_transaction(1, 0, b"b", b"1")
    bench.send((b"c", b"2"))
    assert (bench.log.last_stable_offset, bench.log.high_watermark) == (1, 3)
    bench.end(1, commit=False)
    assert bench.log.last_stable_offset == 4
    part = bench.log.locate(0, 1000, 4)
    assert part is not None
    assert bench.log.aborted(part) == [Aborted(1, 1, 3, 4)]
    bench.send_in_transaction(1, 1, b"b", b"3")
    with pytest.raises(InvalidTxnState):
        bench.send((b"b", b"4"), producer_id=1, producer_epoch=0, base_sequence=2)
    for again in (bench.restart, bench.crash):
        again()
        assert bench.log.last_stable_offset == 4
    bench.end(1, commit=True)
    assert bench.log.last_stable_offset == 6
    assert [entry for segment in bench.log.segments for entry in segment.txn_index.entries] == [Aborted(1, 1, 3, 4)]


def test_a_cut_takes_back_what_lies_beyond(bench: Bench) -> None:
    """After a cut the log is what it was when it ended there: records, producers, transactions (docs/since-2011.md)."""
    bench.send_in_transaction(1, 0, b"a", b"0")
    fill(bench, 20)
    bench.end(1, commit=True)
    assert truncate_to(bench.log, 15)

    assert bench.log.log_end_offset == 15
    assert bench.log.last_stable_offset == 0
    assert [offset for offset, _, _ in bench.pairs()] == list(range(15))
    bench.end(1, commit=False)
    assert bench.log.last_stable_offset == 16
    bench.crash()
    assert [offset for offset, _, _ in bench.pairs()] == list(range(15))


def test_an_idle_producer_is_forgotten_unless_its_transaction_is_open(bench: Bench) -> None:
    """State of producers not heard of for a day goes, never that of an open transaction (docs/since-2011.md)."""
    idempotent(bench, 0)
    bench.send_in_transaction(8, 0, b"k", b"v")

    assert bench.log.producers.expire(T + 1) == [7]
    assert isinstance(bench.log.producers.producers[8], ProducerEntry)


# -- time ---------------------------------------------------------------------------------------------------------


def test_a_time_leads_to_its_first_record(bench: Bench) -> None:
    """The first record stamped at a time or later is found by the time index; so is the largest.

    See docs/since-2011.md.
    """
    fill(bench)
    for number in range(30):
        assert first_at_or_after(bench.log, T + number, no_codec) == (number, T + number)
    assert first_at_or_after(bench.log, T + 30, no_codec) is None
    assert first_at_or_after(bench.log, 0, no_codec) == (0, T)
    assert largest_timestamp(bench.log, no_codec) == (29, T + 29)
    bench.crash()
    assert first_at_or_after(bench.log, T + 17, no_codec) == (17, T + 17)


def test_old_segments_go_by_the_records_times(tmp_path: Path) -> None:
    """retention.ms judges by the newest record of a segment; size and log start are rules of their own.

    See docs/since-2011.md.
    """
    clock = ManualClock(T)
    bench = Bench(tmp_path / "clicks-0", LogConfig(segment_bytes=600, retention_ms=1000, segment_ms=10**12), clock)
    fill(bench)
    clock.advance(1.010)
    assert apply_retention(bench.log) > 0
    start = bench.log.log_start_offset
    assert 0 < start <= 10
    assert bench.pairs()[0][0] == start
    clock.advance(1.0)
    apply_retention(bench.log)
    assert bench.pairs() == []
    assert bench.log.log_end_offset == bench.log.log_start_offset == 30
    bench.send((b"k", b"v"))
    assert bench.pairs() == [(30, b"k", b"v")]


def test_a_lying_timestamp_holds_no_segment_for_ever(tmp_path: Path) -> None:
    """A largest timestamp beyond the clock counts as the time of the append (design §3.1 point 2)."""
    import time

    now = time.time_ns() // 1_000_000
    clock = ManualClock(now)
    bench = Bench(tmp_path / "clicks-0", LogConfig(retention_ms=60_000), clock)
    bench.send((b"k", b"v"), at=now + 10**12)
    clock.advance(30)
    assert apply_retention(bench.log) == 0
    clock.advance(60)
    assert apply_retention(bench.log) == 1


def test_segments_do_not_all_roll_at_once(tmp_path: Path) -> None:
    """Each segment draws its own part of segment.jitter.ms; without jitter it rolls at segment.ms.

    See docs/since-2011.md.
    """
    exact = Bench(tmp_path / "exact-0", LogConfig(segment_ms=1000))
    drawn = set()
    for number in range(20):
        bench = Bench(tmp_path / f"drawn-{number}", LogConfig(segment_ms=10_000, segment_jitter_ms=9_000))
        drawn.add(bench.log._roll_ms)
    for at in (T, T + 1000, T + 1001):
        exact.send((b"k", b"v"), at=at)

    assert len(drawn) > 1
    assert all(1_000 < roll_ms <= 10_000 for roll_ms in drawn)
    assert [segment.base_offset for segment in exact.log.segments] == [0, 2]


def test_size_keeps_at_least_the_limit(tmp_path: Path) -> None:
    """retention.bytes deletes whole segments and never goes below the limit (docs/since-2011.md)."""
    bench = Bench(tmp_path / "clicks-0", LogConfig(segment_bytes=600, retention_bytes=1000, segment_ms=10**12))
    fill(bench)
    before = bench.log.size
    apply_retention(bench.log)

    assert 1000 <= bench.log.size < before


def test_settings_have_kafkas_names() -> None:
    """A topic's settings are real Kafka's by name; what cannot be is refused by name (docs/since-2011.md)."""
    config = SMALL.with_overrides({"cleanup.policy": "compact,delete", "retention.ms": "-1"})

    assert config.compacted and config.deletes and config.retention_ms == -1
    assert config.as_text()["cleanup.policy"] == "compact,delete"
    wrong = {"retention.ms": "soon", "cleanup.policy": "shred", "no.such": "1", "segment.bytes": "3"}
    for name, value in wrong.items():
        with pytest.raises(Exception, match=re.escape(name)):
            SMALL.with_overrides({name: value})


def _flip(bench: Bench, place: int) -> None:
    path = bench.log.segments[0].path
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("place", range(80, 300, 7))
def test_no_flipped_bit_changes_what_is_read(bench: Bench, place: int) -> None:
    """Whatever bit of a batch flips, also of its offset, which no CRC covers: what is read is what was written."""
    fill(bench)
    expected = bench.pairs()
    _flip(bench, place)
    bench.crash()
    found = bench.pairs()

    assert found == expected[: len(found)]


def test_a_damaged_log_takes_no_appends_until_told(bench: Bench) -> None:
    """Damage in the middle closes a log for appends, over restarts too, until somebody accepts it (design §3.1)."""
    fill(bench)
    _flip(bench, 150)
    bench.crash()
    end = bench.log.log_end_offset
    bench.restart()

    assert 0 < bench.log.log_end_offset == end < 30
    with pytest.raises(LogFailed, match="nobody has accepted it"):
        bench.send((b"k", b"v"))
    bench.log.close()
    told = accept_damage(bench.directory)
    bench.restart()
    assert bench.send((b"k", b"v")).first_offset == end
    assert len(told) > 0
    assert all(".log.accepted" in line for line in told)
