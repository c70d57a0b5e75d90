"""Files that somebody else took away are named, and no offset is given out twice (issue 19 B8)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import InvalidMessageSize, Kafka2011Error, OffsetOutOfRange
from kafka2011.failpoints import activate
from kafka2011.log import Log, LogStore
from kafka2011.log.checkpoint import FILE
from kafka2011.log.directory import CLEAN_SHUTDOWN
from kafka2011.log.events import (
    CheckpointDamaged,
    FileMissing,
    MissingAccepted,
    PartitionOffline,
    SegmentQuarantined,
    TailTruncated,
)
from kafka2011.log.segment import segment_name
from kafka2011.wire import decode_set
from tests.unit.log.conftest import ENTRY, OpenStore
from tests.unit.log.test_log import appended, read_all, starts
from tests.unit.log.test_recovery import crash, events, reopened

SIZES = {"file_size": 20}
"""Two messages of 12 bytes per file."""
Stop = Callable[[LogStore], None]
STOPS = pytest.mark.parametrize("stop", [LogStore.close, crash], ids=["clean stop", "kill"])


def filled(open_store: OpenStore, n_messages: int = 7, **settings: object) -> tuple[LogStore, Log]:
    """Files at 0, 24, 48 and 72, the last with one message; all flushed and written down."""
    store = open_store(**SIZES, **settings)
    log = store.get_or_create("t", 0)
    for _ in range(n_messages):
        appended(log, 1)
    log.flush()
    store.checkpoint()
    return store, log


def file(tmp_path: Path, start: int) -> Path:
    return tmp_path / "data" / "t-0" / segment_name(start)


def missing(store: LogStore) -> list[tuple[str, int, int]]:
    return [(one.name, one.start, one.end) for gone in store.missing.values() for one in gone]


@STOPS
def test_the_oldest_file_is_gone(open_store: OpenStore, tmp_path: Path, stop: Stop) -> None:
    """The rest is served, older offsets are out of range, and the file is named, once as an event."""
    store, _ = filled(open_store)
    stop(store)
    file(tmp_path, 0).unlink()
    store, log = reopened(open_store, **SIZES)
    assert missing(store) == [("t-0/00000000000000000000.kafka", 0, 24)]
    assert [(e.path, e.start, e.end) for e in events(store, FileMissing)] == missing(store)  # type: ignore[attr-defined]
    assert (log.first_offset, log.end_offset, read_all(log)) == (24, 84, [b"ab"] * 5)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 100)


@STOPS
def test_a_file_in_the_middle_is_gone(open_store: OpenStore, tmp_path: Path, stop: Stop) -> None:
    """Both sides are served; a reader at the gap is out of range, and "earliest" lies behind it: no endless loop."""
    store, _ = filled(open_store)
    stop(store)
    file(tmp_path, 24).unlink()
    for _ in range(2):
        store, log = reopened(open_store, **SIZES)
        assert missing(store) == [("t-0/00000000000000000024.kafka", 24, 48)]
        assert (starts(log), log.first_offset, log.size) == ([0, 48, 72], 48, 60)
        assert log.offsets_before(-2, 1) == [48]
        with log.read(0, 1000) as piece:
            assert len(decode_set(piece.read())) == 2
        for offset in (24, 36):
            with pytest.raises(OffsetOutOfRange):
                log.read(offset, 100)
        assert read_all(log) == [b"ab"] * 3
        stop(store)


@pytest.mark.parametrize(("stop", "goes_on_at"), [(LogStore.close, 84), (crash, 72 + 20 + 2**31)])
def test_the_active_file_is_gone(open_store: OpenStore, tmp_path: Path, stop: Stop, goes_on_at: int) -> None:
    """New messages never get an offset that was given out: the end is known after a clean stop, else leapt over."""
    store, log = filled(open_store)
    if stop is crash:
        # Flushed, read by somebody, and not yet written down when the process dies.
        appended(log, 1).flush()
    stop(store)
    file(tmp_path, 72).unlink()
    store, log = reopened(open_store, **SIZES)
    assert missing(store) == [("t-0/00000000000000000072.kafka", 72, goes_on_at)]
    assert log.end_offset == log.first_offset == goes_on_at
    assert log.append(ENTRY, 1) == (goes_on_at, goes_on_at + 12)
    log.flush()
    with log.read(48, 1000) as piece:
        assert len(piece.read()) == 24
    stop(store)
    store, log = reopened(open_store, **SIZES)
    assert (starts(log), read_all(log)) == ([0, 24, 48, goes_on_at], [b"ab"])
    assert missing(store) == [("t-0/00000000000000000072.kafka", 72, goes_on_at)]


@pytest.mark.parametrize("how", ["directory", "all files"])
@STOPS
def test_everything_is_gone(open_store: OpenStore, tmp_path: Path, stop: Stop, how: str) -> None:
    """A partition without its files, or its directory, is named and goes on after its last offset, not at 0."""
    store, _ = filled(open_store)
    stop(store)
    directory = tmp_path / "data" / "t-0"
    shutil.rmtree(directory)
    if how == "all files":
        directory.mkdir()
    store, log = reopened(open_store, **SIZES)
    assert [start for _, start, _ in missing(store)] == [0, 24, 48, 72]
    end = log.end_offset
    assert end == 84 if stop is LogStore.close else end > 2**31
    assert log.append(ENTRY, 1) == (end, end + 12)


def test_what_is_missing_is_told_until_somebody_accepts_it(open_store: OpenStore, tmp_path: Path) -> None:
    """It survives restarts of every kind; accepting it ends that, for good."""
    store, _ = filled(open_store)
    store.close()
    file(tmp_path, 0).unlink()
    for stop in (crash, LogStore.close, crash):
        store = open_store(**SIZES)
        assert len(missing(store)) == 1
        stop(store)
    store = open_store(**SIZES)
    assert [str(one) for one in store.accept_missing()] == [
        "t-0/00000000000000000000.kafka is gone, with the offsets 0 to 24"
    ]
    assert len(events(store, MissingAccepted)) == 1
    crash(store)
    assert missing(open_store(**SIZES)) == []


def test_a_file_that_was_put_back_is_not_missing(open_store: OpenStore, tmp_path: Path) -> None:
    """A good copy put back under its own name makes everything as before."""
    store, _ = filled(open_store)
    store.close()
    data = file(tmp_path, 24).read_bytes()
    file(tmp_path, 24).unlink()
    store = open_store(**SIZES)
    assert len(missing(store)) == 1
    store.close()
    file(tmp_path, 24).write_bytes(data)
    store, log = reopened(open_store, **SIZES)
    assert (missing(store), read_all(log)) == ([], [b"ab"] * 7)


@pytest.mark.parametrize("step", ["log.retention.before_unlink", "log.retention.after_unlink"])
@pytest.mark.parametrize("noted", [True, False])
def test_our_own_retention_raises_no_alarm(open_store: OpenStore, step: str, noted: bool) -> None:
    """Killed between a deletion and any note of it, or with a disk that takes no note: nothing is missing."""
    store, _ = filled(open_store, retention_size=24)
    checkpoint = "log.checkpoint.before_write"
    with activate(checkpoint, "off" if noted else "raise:ENOSPC"), activate(step, "raise:EIO@2"):
        store.apply_retention()
        crash(store)
    store, log = reopened(open_store, **SIZES, retention_size=24)
    assert missing(store) == []
    assert log.end_offset == 84


def test_a_directory_that_a_real_07_broker_had_meanwhile(open_store: OpenStore, tmp_path: Path) -> None:
    """0.7 appends, rolls and deletes without notes, and leaves an empty marker, or none: no false alarm, no loss."""
    for marker in (True, False):
        store, log = filled(open_store)
        end, oldest = log.end_offset, log.first_offset
        store.close()
        (tmp_path / "data" / CLEAN_SHUTDOWN).unlink()
        for start in starts(log)[:2]:
            file(tmp_path, start).unlink()
        file(tmp_path, end).write_bytes(ENTRY)
        if marker:
            (tmp_path / "data" / CLEAN_SHUTDOWN).touch()
        store, log = reopened(open_store, **SIZES)
        assert missing(store) == []
        assert (log.first_offset > oldest, log.end_offset) == (True, end + 12)
        store.close()
        shutil.rmtree(tmp_path / "data")


def test_old_files_may_have_been_deleted_by_retention(
    open_store: OpenStore, tmp_path: Path, clock: ManualClock
) -> None:
    """After a kill nothing tells who had the directory: a file that was due for deletion is not missed."""
    store, _ = filled(open_store)
    crash(store)
    clock.advance(8 * 24 * 3600)
    file(tmp_path, 0).unlink()
    store, log = reopened(open_store, **SIZES)
    assert (missing(store), log.first_offset) == ([], 24)


def test_an_empty_directory_of_an_empty_log_is_nothing(open_store: OpenStore, tmp_path: Path) -> None:
    """A topic that never had a message, and a log that retention emptied, lose nothing with their empty file."""
    store = open_store()
    store.get_or_create("empty", 0)
    store.close()
    (tmp_path / "data" / "empty-0" / segment_name(0)).unlink()
    store = open_store()
    assert (missing(store), store.offline) == ([], {})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "delete": lambda path: shutil.rmtree(path) if path.is_dir() else path.unlink(),
    "empty": lambda path: os.truncate(path, 0),
    "truncate": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut a message": lambda path: os.truncate(path, max(0, path.stat().st_size - 12)),
    "flip": flip,
}
VICTIMS = {
    "oldest": f"t-0/{segment_name(0)}",
    "middle": f"t-0/{segment_name(24)}",
    "last but one": f"t-0/{segment_name(48)}",
    "active": f"t-0/{segment_name(72)}",
    "directory": "t-0",
    "checkpoint": FILE,
}
NAMED = (FileMissing, PartitionOffline, SegmentQuarantined, TailTruncated, CheckpointDamaged)


CASES = [(how, victim) for victim in VICTIMS for how in DAMAGE if how == "delete" or victim != "directory"]


@pytest.mark.parametrize(("how", "victim"), CASES)
@STOPS
def test_the_damage_matrix(open_store: OpenStore, tmp_path: Path, stop: Stop, how: str, victim: str) -> None:
    """Whatever is done to whichever file: it is named at the start or to the reader, or every message is there; an
    offset that was given out never means another message."""
    store, _ = filled(open_store)
    expected = dict.fromkeys(range(0, 84, 12), b"ab")
    stop(store)
    path = tmp_path / "data" / VICTIMS[victim]
    DAMAGE[how](path)
    store = open_store(**SIZES)
    named: list[object] = [e.event for e in store.journal.since() if isinstance(e.event, NAMED)]
    found: dict[int, bytes] = {}
    try:
        served = store.get("t", 0)
        assert served is not None
        start, _ = served.append(ENTRY, 1)
        assert start >= 84 or start not in expected, "an offset was given out twice"
        for segment in served.segments():
            offset = segment.start
            while offset < segment.start + segment.flushed_size:
                with served.read(offset, 1000) as piece:
                    messages = decode_set(piece.read(), offset)
                if not messages:
                    raise InvalidMessageSize(f"a consumer cannot read on at {offset}")
                found |= {m.offset: m.payload for m in messages}
                offset = messages[-1].next_offset
    except Kafka2011Error as error:
        named.append(error)
    assert all(found[offset] == expected[offset] for offset in found.keys() & expected.keys())
    assert named or found.keys() >= expected.keys(), "lost in silence"
