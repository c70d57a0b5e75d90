"""Start after a clean and an unclean stop: torn tails are cut, damage is never skipped (§3.3, docs/log.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka2011.errors import LogCorrupt
from kafka2011.failpoints import activate
from kafka2011.log import Log, LogStore
from kafka2011.log.checkpoint import (
    FILE,
    Checkpoint,
    KeptFile,
    Missing,
    RecoveryPoint,
    read_checkpoint,
    write_checkpoint,
)
from kafka2011.log.directory import CLEAN_SHUTDOWN
from kafka2011.log.events import (
    LogRecovered,
    PartitionOffline,
    SegmentQuarantined,
    SegmentSetAside,
    TailTruncated,
)
from kafka2011.wire import Message, crc32, encode_message, encode_set
from tests.unit.log.conftest import ENTRY, OpenStore
from tests.unit.log.test_log import appended, read_all, starts


def events(store: LogStore, kind: type) -> list[object]:
    return [e.event for e in store.journal.since() if isinstance(e.event, kind)]


def crash(store: LogStore) -> None:
    """Stop as a killed process does: nothing is flushed, no marker is left, the lock goes."""
    assert store._lock is not None
    store._lock.release()
    store._lock = None


def reopened(open_store: OpenStore, **settings: object) -> tuple[LogStore, Log]:
    store = open_store(**settings)
    log = store.get("t", 0)
    assert log is not None
    return store, log


def test_clean_stop_leaves_the_marker_and_needs_no_scan(open_store: OpenStore, tmp_path: Path) -> None:
    """The marker is there after a clean stop, is taken at the start, and appends go on at the old end (docs/log.md)."""
    store = open_store()
    appended(store.get_or_create("t", 0), 3)
    store.close()
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    store, log = reopened(open_store)
    assert not (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    assert not events(store, LogRecovered)
    assert read_all(log) == [b"ab"] * 3
    assert log.append(ENTRY, 1) == (36, 48)


def test_what_survived_a_kill_becomes_visible(open_store: OpenStore) -> None:
    """Unflushed messages the kernel kept are scanned, synced and shown (docs/log.md)."""
    store = open_store()
    appended(store.get_or_create("t", 0), 3)
    crash(store)
    store, log = reopened(open_store)
    assert log.flushed_offset == 36
    assert [(e.recovery_point, e.size_scanned) for e in events(store, LogRecovered)] == [(0, 36)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("tail", [b"", bytes(2), bytes(4), bytes(5), bytes(6), ENTRY[:-1], b"\xff" * 30, bytes(4096)])
def test_torn_tails_are_cut_and_reported(open_store: OpenStore, tmp_path: Path, tail: bytes) -> None:
    """Zeros, garbage or half a message at the end are cut off, and the bytes are counted.

    See docs/paper-vs-code.md FileMessageSet.
    """
    store = open_store()
    appended(store.get_or_create("t", 0), 3)
    crash(store)
    with open(tmp_path / "data" / "t-0" / f"{0:020d}.kafka", "ab") as file:
        file.write(tail)
    store, log = reopened(open_store)
    assert log.end_offset == 36
    assert read_all(log) == [b"ab"] * 3
    cut = events(store, TailTruncated)
    assert [(e.start, e.size) for e in cut] == ([(36, len(tail))] if tail else [])  # type: ignore[attr-defined]


def test_without_marker_and_checkpoint_the_last_segment_is_scanned(open_store: OpenStore, tmp_path: Path) -> None:
    """A directory of a real 0.7 broker: earlier segments are trusted, the last is scanned (docs/log.md)."""
    directory = tmp_path / "data" / "t-0"
    directory.mkdir(parents=True)
    (directory / "0.kafka").write_bytes(ENTRY * 2)
    (directory / "24.kafka").write_bytes(ENTRY + ENTRY[:5])
    store, log = reopened(open_store)
    assert log.end_offset == 36
    assert len(events(store, TailTruncated)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:23] + b"!" + data[24:],
        lambda data: data[:12] + bytes(12) + data[24:],
        lambda data: data[:12] + b"\x7f\xff\xff\xff" + data[16:],
        lambda data: data[:12] + b"\0\0\0\7" + data[16:],
    ],
    ids=["flipped payload", "lost write", "length too long", "length too short"],
)
def test_damage_in_the_middle_is_quarantined(
    open_store: OpenStore, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """When intact messages follow, nothing is dropped: the partition is offline, the range is told (reliability 9)."""
    store = open_store(num_partitions=2)
    appended(store.get_or_create("t", 0), 4)
    appended(store.get_or_create("t", 1), 1)
    crash(store)
    path = tmp_path / "data" / "t-0" / f"{0:020d}.kafka"
    bad = damage(path.read_bytes())
    path.write_bytes(bad)
    for attempt in range(2):
        store = open_store(num_partitions=2)
        with pytest.raises(LogCorrupt, match="salvage"):
            store.get("t", 0)
        with pytest.raises(LogCorrupt):
            store.get_or_create("t", 0)
        other = store.get("t", 1)
        assert other is not None
        assert read_all(other) == [b"ab"]
        assert len(events(store, PartitionOffline)) == 1
        found = events(store, SegmentQuarantined)
        assert [(e.start, e.end) for e in found] == ([(12, 48)] if not attempt else [])  # type: ignore[attr-defined]
        assert path.with_suffix(".kafka.corrupt").read_bytes() == bad
        store.close()


def test_policy_truncate_keeps_a_copy_and_goes_on(open_store: OpenStore, tmp_path: Path) -> None:
    """By choice the intact part is served again, and every byte is kept beside it."""
    store = open_store(file_size=40)
    appended(store.get_or_create("t", 0), 6)
    crash(store)
    path = tmp_path / "data" / "t-0" / f"{0:020d}.kafka"
    bad = path.read_bytes()[:20] + b"!!!!" + path.read_bytes()[24:]
    path.write_bytes(bad)
    store, log = reopened(open_store, corrupt_policy="truncate")
    assert (log.first_offset, log.end_offset) == (0, 12)
    assert path.with_suffix(".kafka.corrupt").read_bytes() == bad
    assert (path.parent / f"{48:020d}.kafka.aside").exists()
    store.close()
    _, log = reopened(open_store)
    assert log.end_offset == 12


def test_an_offline_partition_can_be_brought_back(open_store: OpenStore, tmp_path: Path) -> None:
    """Offline first; with the policy truncate the next start serves what comes before the damage (docs/log.md)."""
    store = open_store()
    appended(store.get_or_create("t", 0), 4)
    crash(store)
    path = tmp_path / "data" / "t-0" / f"{0:020d}.kafka"
    path.write_bytes(path.read_bytes()[:20] + b"!!!!" + path.read_bytes()[24:])
    store = open_store()
    with pytest.raises(LogCorrupt, match="truncate"):
        store.get("t", 0)
    store.close()
    store, log = reopened(open_store, corrupt_policy="truncate")
    assert read_all(log) == [b"ab"]
    assert log.append(ENTRY, 1) == (12, 24)
    assert len(events(store, SegmentQuarantined)) == 1


def test_missing_flushed_bytes_are_damage(open_store: OpenStore, tmp_path: Path) -> None:
    """A log shorter than its recovery point has lost what consumers saw: offline, after any kind of stop."""
    for stop in (crash, LogStore.close):
        store = open_store(topic_partitions={"t": 1})
        log = appended(store.get_or_create("t", 0), 4)
        log.flush()
        store.checkpoint()
        stop(store)
        path = tmp_path / "data" / "t-0" / f"{0:020d}.kafka"
        data = path.read_bytes()
        os.truncate(path, 30)
        store = open_store()
        with pytest.raises(LogCorrupt, match="were flushed"):
            store.get("t", 0)
        store.close()
        path.write_bytes(data)
        store, log = reopened(open_store)
        assert read_all(log) == [b"ab"] * (log.end_offset // 12)
        store.close()


@pytest.mark.parametrize(("names", "sizes"), [((0, 15), (0, 0)), ((0, 24), (12, 12)), ((0, 12), (24, 12))])
def test_gaps_and_overlaps_are_refused(
    open_store: OpenStore, tmp_path: Path, names: tuple[int, int], sizes: tuple[int, int]
) -> None:
    """Segments must follow each other exactly; otherwise that partition is offline, the others run.

    See docs/log.md, docs/paper-vs-code.md.
    """
    directory = tmp_path / "data" / "t-0"
    directory.mkdir(parents=True)
    for name, size in zip(names, sizes, strict=True):
        (directory / f"{name}.kafka").write_bytes((ENTRY * 2)[:size])
    store = open_store()
    with pytest.raises(LogCorrupt, match="next segment begins at"):
        store.get("t", 0)
    assert store.get_or_create("other", 0).append(ENTRY, 1) == (0, 12)


def test_resurrected_segments_are_deleted_again(open_store: OpenStore, tmp_path: Path) -> None:
    """A deletion a power cut undid is done again, also when it left a gap (docs/reliability.md)."""
    store = open_store(file_size=20, retention_size=24)
    log = appended(store.get_or_create("t", 0), 6)
    log.flush()
    old = {path: path.read_bytes() for path in (tmp_path / "data" / "t-0").iterdir()}
    store.apply_retention()
    assert log.first_offset == 48
    crash(store)
    first = min(old)
    first.write_bytes(old[first])
    store, log = reopened(open_store)
    assert starts(log) == [48]
    assert not first.exists()
    assert len(events(store, SegmentSetAside)) == 1


def test_a_lost_end_of_an_unflushed_segment_drops_what_followed(open_store: OpenStore, tmp_path: Path) -> None:
    """Bytes lost before a roll's flush: the log ends there, later segments are kept aside, all is told."""
    store = open_store(file_size=40)
    log = appended(store.get_or_create("t", 0), 2)
    log.flush()
    store.checkpoint()
    appended(log, 5)
    crash(store)
    os.truncate(tmp_path / "data" / "t-0" / f"{0:020d}.kafka", 41)
    store, log = reopened(open_store)
    assert (starts(log), log.end_offset) == ([0], 36)
    (cut,) = events(store, TailTruncated)
    assert (cut.start, cut.end, cut.size) == (36, 84, 5 + 36)  # type: ignore[attr-defined]
    assert log.append(ENTRY, 1) == (36, 48)


def test_a_cut_off_message_may_contain_messages(open_store: OpenStore, tmp_path: Path) -> None:
    """Messages inside the payload of a cut-off write are not taken for intact messages after damage."""
    store = open_store()
    appended(store.get_or_create("t", 0), 1)
    crash(store)
    nested = encode_message(Message(ENTRY * 20 + b"rest"))
    path = tmp_path / "data" / "t-0" / f"{0:020d}.kafka"
    for cut in (1, 5, 11, 60):
        path.write_bytes(ENTRY + nested[:-cut])
        store, log = reopened(open_store)
        assert log.end_offset == 12
        crash(store)


def test_recovery_starts_at_the_checkpoint(open_store: OpenStore) -> None:
    """What was flushed and checkpointed is not scanned again: a roll writes the checkpoint (docs/reliability.md)."""
    store = open_store(file_size=100)
    log = appended(store.get_or_create("t", 0), 20)
    log.flush()
    appended(log, 1)
    crash(store)
    store, log = reopened(open_store, file_size=100)
    assert [(e.recovery_point, e.size_scanned) for e in events(store, LogRecovered)] == [(240, 12)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("step", ["log.recovery.before_truncate", "log.recovery.after_truncate"])
def test_recovery_can_be_interrupted(open_store: OpenStore, tmp_path: Path, step: str) -> None:
    """A crash during recovery is harmless: it starts again (docs/reliability.md)."""
    store = open_store()
    appended(store.get_or_create("t", 0), 3)
    crash(store)
    with open(tmp_path / "data" / "t-0" / f"{0:020d}.kafka", "ab") as file:
        file.write(b"torn")
    with activate(step, "raise:EIO"):
        store = open_store()
        with pytest.raises(LogCorrupt, match="offline"):
            store.get("t", 0)
        crash(store)
    _, log = reopened(open_store)
    assert read_all(log) == [b"ab"] * 3


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    """A checkpoint is read as it was written; a damaged one is named, a missing one is none."""
    points = {
        "a-0": RecoveryPoint(0, 10, (KeptFile(0, 4, 1_300_000_000_000), KeptFile(4, 6, 2))),
        "b-c-12": RecoveryPoint(5, 2**62),
        "empty-0": RecoveryPoint(7, 7, ()),
    }
    missing = {"a-0": (Missing("a-0/00.kafka", 0, 10), Missing("a-0/10.kafka", 10, 20))}
    written = Checkpoint(points, missing, closed=True)
    write_checkpoint(tmp_path, written)
    assert read_checkpoint(tmp_path) == written
    path = tmp_path / FILE
    data = path.read_bytes()
    for bad in (b"", data[:-3], data.replace(b"10", b"99"), b"\xff" * 50):
        path.write_bytes(bad)
        assert read_checkpoint(tmp_path) == Checkpoint(damaged=True)
    path.unlink()
    assert read_checkpoint(tmp_path) is None


def test_the_checkpoint_of_the_first_release_is_read(tmp_path: Path) -> None:
    """Release 1.0 wrote no inventory: its recovery points count, and no file is held to be missing."""
    body = b"kafka2011 recovery points 1\nt-0 24 48\n"
    (tmp_path / FILE).write_bytes(body + b"crc %08x\n" % crc32(body))
    assert read_checkpoint(tmp_path) == Checkpoint({"t-0": RecoveryPoint(24, 48)})


def test_large_messages_are_recovered(open_store: OpenStore) -> None:
    """A message larger than the scanner's step is recognised whole."""
    store = open_store()
    big = encode_set([b"x" * 3_000_000, b"small", b"y" * 1_500_000])
    store.get_or_create("t", 0).append(ENTRY + big, 4)
    crash(store)
    _, log = reopened(open_store)
    assert log.end_offset == 12 + len(big)


def test_old_magic_is_recovered(open_store: OpenStore, tmp_path: Path) -> None:
    """A log of magic-0 messages loads and keeps its bytes (docs/paper-vs-code.md BackwardsCompatibility)."""
    directory = tmp_path / "data" / "t-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.kafka").write_bytes(encode_set([b"x" * 100] * 100, magic=0))
    _, log = reopened(open_store)
    assert read_all(log, 2000) == [b"x" * 100] * 100
