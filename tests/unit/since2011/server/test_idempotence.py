"""Which batches of an idempotent producer are appended: the rules, and the notes that survive a crash.

See docs/modern-port.md, docs/reliability.md.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import LogFailed, LogFull
from kafka2011.failpoints import activate
from since2011.era2011 import producer_journal
from since2011.era2011.idempotence import WINDOW, Duplicate, Producers, RecentProducers, Written, last_sequence
from since2011.era2011.producer_journal import PartitionJournal, ProducerNotes
from since2011.wire.error_codes import ErrorCode

PID = 7
TOP = 2**31 - 1
LATER_MS = 1 << 45
"""A time of writing that never expires here."""


def written(first: int, last: int, *, epoch: int = 0, start: int = 0, wall_ms: int = LATER_MS) -> Written:
    """A batch of ten bytes per record at ``start``."""
    return Written(PID, epoch, first, last, start + 9, start, start + 10 * (last - first + 1), wall_ms)


def check(producers: Producers, first: int, last: int, *, epoch: int = 0, pid: int = PID, fresh: bool = True) -> object:
    """The verdict on a batch."""
    return producers.check(pid, epoch, first, last, fresh=fresh)


def test_rules_of_the_sequence() -> None:
    """The table of §14, row by row: duplicate, old epoch, new epoch, unknown producer, gap, next."""
    producers = Producers()
    assert check(producers, 5, 9) == ErrorCode.NONE
    producers.note(first := written(5, 9, epoch=1))

    assert Duplicate(first) == check(producers, 5, 9, epoch=1)
    assert check(producers, 5, 8, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(producers, 10, 10, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert check(producers, 0, 3, epoch=2) == ErrorCode.NONE
    assert check(producers, 10, 12, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(producers, 11, 12, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(producers, 10, 12, epoch=1) == ErrorCode.NONE


def test_five_batches_are_remembered() -> None:
    """A retry of any of the last five is answered again; an older one is out of order (§14)."""
    producers = Producers()
    for number in range(WINDOW + 2):
        producers.note(written(number, number, start=10 * number))

    assert check(producers, 1, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for number in range(2, WINDOW + 2):
        assert isinstance(check(producers, number, number), Duplicate)


def test_sequences_wrap() -> None:
    """After 2³¹ − 1 comes 0 (§14)."""
    producers = Producers()
    producers.note(written(TOP - 1, TOP))

    assert check(producers, 0, 4) == ErrorCode.NONE
    assert last_sequence(TOP, 3) == 1


def test_a_new_epoch_forgets_the_old_batches() -> None:
    """A new epoch clears the cache (§14)."""
    producers = Producers()
    producers.note(written(0, 0))
    producers.note(written(0, 0, epoch=1, start=10))

    assert check(producers, 0, 0, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(check(producers, 0, 0, epoch=1), Duplicate)


def test_in_doubt_only_repetitions_and_new_ids_are_believed() -> None:
    """After a machine crash with unexplained bytes in the log, an old producer's next batch is refused (§14)."""
    producers = Producers(in_doubt=True)
    producers.note(known := written(0, 4))

    assert Duplicate(known) == check(producers, 0, 4, fresh=False)
    assert check(producers, 5, 5, fresh=False) == ErrorCode.UNKNOWN_PRODUCER_ID
    assert check(producers, 0, 0, pid=8, fresh=False) == ErrorCode.UNKNOWN_PRODUCER_ID
    assert check(producers, 0, 0, pid=9, fresh=True) == ErrorCode.NONE


def test_producers_are_forgotten_after_a_day() -> None:
    """State goes producer.id.expiration.ms after the last write (§14)."""
    producers = Producers(expire_ms=1000)
    producers.note(written(0, 0, wall_ms=5000))
    producers.expire(6000)
    assert len(producers) == 1
    producers.expire(6001)

    assert check(producers, 99, 99) == ErrorCode.NONE


class FakeLog:
    """Bytes that grow by appends and are cut by crashes."""

    def __init__(self) -> None:
        self.end = 0

    def append(self, size: int) -> None:
        self.end += size


def send(journal: PartitionJournal, log: FakeLog, first: int, n: int = 1) -> object:
    """What the intake does with a batch of ``n`` records of ten bytes: the verdict, and the append if there is one."""
    last = last_sequence(first, n)
    verdict = journal.producers.check(PID, 0, first, last, fresh=False)
    if isinstance(verdict, Duplicate) and not verdict.written.missing:
        return verdict
    size = verdict.written.missing if isinstance(verdict, Duplicate) else 10 * n
    if isinstance(verdict, Duplicate) or verdict is ErrorCode.NONE:
        noted = Written(PID, 0, first, last, log.end + 9, log.end, log.end + size, LATER_MS)
        journal.append(noted, lambda: log.append(size))
    return verdict


@pytest.mark.parametrize("survived", [20, 30, 40, 50])
def test_after_a_crash_every_record_is_written_once(tmp_path: Path, survived: int) -> None:
    """Wherever a crash cuts the log (at a message), a retry leaves each record in it exactly once (§14)."""
    path, log = tmp_path / "p", FakeLog()
    journal = PartitionJournal(path, 0)
    send(journal, log, 0, 2)
    send(journal, log, 2, 3)
    log.end = survived  # of 50 bytes; recovery keeps whole messages

    journal = PartitionJournal(path, log.end)
    assert isinstance(send(journal, log, 0, 2), Duplicate)
    if survived < 50:
        assert send(journal, log, 5, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "not before the batch is whole"
    send(journal, log, 2, 3)
    assert isinstance(send(journal, log, 2, 3), Duplicate)
    send(journal, log, 5, 1)

    assert log.end == 60
    again = PartitionJournal(path, log.end)
    assert isinstance(send(again, log, 2, 3), Duplicate)
    assert log.end == 60


def test_a_lost_batch_is_not_believed_when_others_take_its_place(tmp_path: Path) -> None:
    """Entries the log has lost are cut off, so that bytes written there later are not mistaken for them (§14)."""
    path, log = tmp_path / "p", FakeLog()
    send(PartitionJournal(path, 0), log, 0)
    log.end = 0
    PartitionJournal(path, recovered := log.end)
    assert recovered == 0
    log.append(500)

    assert send(PartitionJournal(path, log.end), log, 0) == ErrorCode.NONE


def test_a_refused_append_leaves_no_note(tmp_path: Path) -> None:
    """When the disk is full nothing is noted; when the disk failed, the restart decides (§14)."""
    path = tmp_path / "p"
    journal = PartitionJournal(path, 0)

    def full() -> None:
        raise LogFull("no space")

    def failed() -> None:
        raise LogFailed("the disk failed")

    with pytest.raises(LogFull):
        journal.append(written(0, 0), full)
    assert path.read_bytes() == b""
    with pytest.raises(LogFailed):
        journal.append(written(0, 0), failed)

    assert len(journal.producers) == 0
    assert isinstance(check(PartitionJournal(path, 10).producers, 0, 0), Duplicate)


def test_a_torn_or_damaged_note_ends_the_file(tmp_path: Path) -> None:
    """A last entry cut short is dropped; so is everything from a damaged one on (§14)."""
    path, log = tmp_path / "p", FakeLog()
    journal = PartitionJournal(path, 0)
    for number in range(3):
        send(journal, log, number)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert check(PartitionJournal(path, log.end).producers, 2, 2) == ErrorCode.NONE
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])

    assert len(PartitionJournal(path, log.end).producers) == 0


def test_doubt_needs_another_boot_and_unexplained_bytes(tmp_path: Path) -> None:
    """A process that died loses no note; a machine may have, if the log holds more than the notes say (§14)."""
    path, log = tmp_path / "p", FakeLog()
    send(PartitionJournal(path, 0), log, 0)

    assert not PartitionJournal(path, log.end, same_boot=False).producers.in_doubt
    assert not PartitionJournal(path, log.end + 10, same_boot=True).producers.in_doubt
    assert PartitionJournal(path, log.end + 10, same_boot=False).producers.in_doubt


def test_the_file_is_written_anew_when_most_of_it_is_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction keeps what is remembered and loses nothing a retry needs (§14)."""
    monkeypatch.setattr(producer_journal, "_COMPACT_FROM", 20)
    path, log, clock = tmp_path / "p", FakeLog(), ManualClock(wall_ms=0)
    journal = PartitionJournal(path, 0, clock=clock)
    for number in range(30):
        send(journal, log, number)
    before = path.stat().st_size
    journal.maybe_compact()

    assert path.stat().st_size == before * WINDOW // 30
    send(journal, log, 30)
    reopened = PartitionJournal(path, log.end, clock=clock)
    assert isinstance(check(reopened.producers, 30, 30), Duplicate)
    assert isinstance(check(reopened.producers, 27, 27), Duplicate)
    assert check(reopened.producers, 31, 31) == ErrorCode.NONE


def test_producer_ids_begin_beyond_those_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design §3.1 point 5: ids that an older release handed out here are never in a block; its end is remembered."""
    path = tmp_path / "ids.json"
    assert ProducerNotes(path, broker_id=3).reserved == 0
    path.write_text('{"next": 2000, "boot": "before", "clean": true}')
    notes = ProducerNotes(path, broker_id=3)

    assert notes.reserved == (3 << 40) + 2000 and notes.same_boot
    monkeypatch.setattr(producer_journal, "boot_id", lambda: "another")
    assert not ProducerNotes(path, broker_id=3).same_boot
    ProducerNotes(path, broker_id=3).close()
    assert ProducerNotes(path, broker_id=3).same_boot
    assert path.stat().st_mode & 0o777 == 0o600, "Issue 19 B10: as private as everything else"


def test_a_full_disk_takes_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 19 B7: the broker starts without room; until there is some, no note is taken."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "ids.json"
    with monkeypatch.context() as patched:
        patched.setattr("since2011.era2011.producer_journal.os.fsync", full)
        notes = ProducerNotes(path, broker_id=3)
        for _ in range(2):
            with pytest.raises(LogFull, match="no room"):
                notes.open()
    notes.open()
    journal = PartitionJournal(tmp_path / "t-0", 0)
    with activate("producers.before_note", "raise:ENOSPC"), pytest.raises(LogFull, match="no room"):
        journal.append(written(0, 0), lambda: None)
    journal.append(written(0, 0), lambda: None)


def test_only_so_many_producers_are_remembered(tmp_path: Path) -> None:
    """Issue 19 B5: "60,000 producer ids: cap, count, expire": who wrote longest ago is forgotten, in all partitions."""
    recent = RecentProducers(most=3)
    first = PartitionJournal(tmp_path / "first", 0, recent=recent)
    second = PartitionJournal(tmp_path / "second", 0, recent=recent)
    note(first, 1, at=0)
    note(first, 2, at=10)
    note(second, 1, at=0)
    note(first, 1, at=20, sequence=1)
    note(second, 3, at=10)

    assert (len(recent), recent.n_forgotten) == (3, 1)
    assert (len(first.producers), len(second.producers)) == (1, 2)
    assert isinstance(first.producers.check(1, 0, 1, 1, fresh=False), Duplicate), "it wrote a moment ago"
    assert first.producers.check(2, 0, 1, 1, fresh=False) is ErrorCode.NONE, "forgotten, it may go on"


def test_expired_producers_make_room(tmp_path: Path) -> None:
    """Issue 19 B5: who has not written for producer.id.expiration.ms is forgotten, and counts no more."""
    clock = ManualClock()
    recent = RecentProducers(most=3)
    journal = PartitionJournal(tmp_path / "p", 0, clock=clock, expire_ms=1000, recent=recent)
    note(journal, 1, at=0, wall_ms=clock.wall_ms())
    clock.advance(0.9)
    note(journal, 2, at=10, wall_ms=clock.wall_ms())
    clock.advance(0.2)
    journal.maybe_compact()

    assert (len(journal.producers), len(recent), recent.n_forgotten) == (1, 1, 0)


def test_what_a_restart_finds_counts_as_well(tmp_path: Path) -> None:
    """Issue 19 B5: notes read from disk are bounded like those made now."""
    journal = PartitionJournal(tmp_path / "p", 0)
    for number in range(10):
        note(journal, number, at=10 * number)
    recent = RecentProducers(most=4)
    again = PartitionJournal(tmp_path / "p", 100, recent=recent)

    assert (len(again.producers), len(recent)) == (4, 4)
    assert isinstance(again.producers.check(9, 0, 0, 0, fresh=False), Duplicate)


def note(journal: PartitionJournal, producer_id: int, *, at: int, sequence: int = 0, wall_ms: int = 2**41) -> None:
    """Let a producer write ten bytes at ``at``."""
    entry = Written(producer_id, 0, sequence, sequence, at + 9, at, at + 10, wall_ms)
    journal.append(entry, lambda: None)
