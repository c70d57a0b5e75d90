"""The logs of a broker in several directories: start, stop, crash, deletion, a disk that fails."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import IllegalTopicName, LogCorrupt, LogDirectoryInUse, LogFailed, LogFull
from kafka2011.events import Event, Journal
from kafka2011.failpoints import activate
from since2011.log import checkpoint
from since2011.log.events import (
    CheckpointIgnored,
    EpochsRebuilt,
    IndexRebuilt,
    LogDirectoryOffline,
    ModernLogCleaned,
    ModernLogOffline,
    StrayDirectory,
)
from since2011.log.identity import ForeignLogDirectory, Identity, read_identity, read_topic_id
from since2011.log.log import ModernLog
from since2011.log.log_directory import LogDirectoryFailed
from since2011.log.manager import LogManager
from since2011.log.settings import LogConfig
from since2011.log.upkeep import Upkeep, UpkeepSettings
from since2011.wire.records import Record, encode_records
from tests.unit.since2011.bench import PLAIN, SMALL
from tests.unit.since2011.vectors import T
from tests.waiting import until

US = Identity(7, "4lXOlHdzR7eFnm5NhfMSNA")
TOPIC_ID = uuid.UUID(int=0x1234)


class Broker:
    """A manager over two directories that can be stopped, killed and started again."""

    def __init__(self, root: Path) -> None:
        self.paths = [root / "a", root / "b"]
        self.clock = ManualClock(T)
        self.config = SMALL
        self.start()

    def start(self, identity: Identity = US) -> None:
        self.journal = Journal()
        self.manager = LogManager(
            self.paths, identity, lambda topic: self.config, clock=self.clock, journal=self.journal
        )
        self.manager.start()

    def restart(self) -> None:
        self.manager.close()
        self.start()

    def crash(self) -> None:
        """What kill -9 leaves: what was written is there, no checkpoint is, and no mark."""
        self.manager.close(clean=False)
        self.start()

    def log(self, partition: int = 0, topic: str = "clicks") -> ModernLog:
        return self.manager.get_or_create(topic, partition, TOPIC_ID)

    def send(self, *values: bytes, partition: int = 0, key: bytes = b"k") -> int:
        log = self.log(partition)
        records = [Record(n, self.clock.wall_ms(), key, value) for n, value in enumerate(values)]
        offset = log.append(PLAIN.prepare(encode_records(records), log.config, T), 0).first_offset
        log.raise_high_watermark(log.log_end_offset)
        return offset

    def events(self, kind: type[Event]) -> list[Event]:
        return [entry.event for entry in self.journal.since() if isinstance(entry.event, kind)]


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


# -- start and stop -----------------------------------------------------------------------------------------------


def test_a_clean_stop_is_believed(broker: Broker) -> None:
    """After a clean stop every log is as it was, and none is read through; the mark is taken at once.

    See docs/since-2011.md.
    """
    for partition in range(4):
        for number in range(10):
            broker.send(b"v%d" % number, partition=partition)
    broker.log().raise_log_start(3)
    broker.restart()

    assert len(broker.manager.logs()) == 4
    log = broker.log()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point) == (3, 10, 10, 10)
    assert broker.events(IndexRebuilt) == []
    assert not any((path / ".kafka_cleanshutdown").exists() for path in broker.paths)
    assert read_topic_id(log.directory) == TOPIC_ID == log.topic_id


def test_after_a_crash_logs_are_read_from_the_recovery_point(broker: Broker) -> None:
    """Without the mark of a clean stop, segments beyond the recovery point are read through, the others are not."""
    for number in range(30):
        broker.send(b"value %d" % number)
    broker.manager.flush_due()
    broker.manager.checkpoint()
    rolled = broker.log().active.base_offset
    broker.crash()

    assert broker.log().log_end_offset == 30
    assert [event.base_offset for event in broker.events(IndexRebuilt)] == [rolled]  # type: ignore[attr-defined]


def test_partitions_go_to_the_directory_with_the_fewest(broker: Broker) -> None:
    """New partitions are shared out over log.dirs by the number of logs (docs/since-2011.md)."""
    for partition in range(6):
        broker.log(partition)

    assert [len([e for e in os.scandir(path) if e.is_dir()]) for path in broker.paths] == [3, 3]


def test_one_partition_in_two_directories_is_named(broker: Broker, tmp_path: Path) -> None:
    """A partition that lies in two directories stops the start, because nobody can say which is right.

    See docs/since-2011.md.
    """
    broker.send(b"v")
    home = broker.log().directory
    broker.manager.close()
    other = next(path for path in broker.paths if path != home.parent)
    shutil.copytree(home, other / home.name)

    with pytest.raises(LogFailed, match=r"clicks-0 lies in .* and in"):
        broker.start()


def test_a_foreign_directory_is_refused(broker: Broker, tmp_path: Path) -> None:
    """A directory of another broker, another cluster or a KRaft broker is refused with its name.

    See docs/since-2011.md.
    """
    broker.manager.close()

    assert read_identity(broker.paths[0]) == US
    with pytest.raises(ForeignLogDirectory, match="belongs to broker 7"):
        broker.start(US._replace(broker_id=8))
    with pytest.raises(ForeignLogDirectory, match="belongs to cluster 4lXO"):
        broker.start(US._replace(cluster_id="another"))
    (broker.paths[1] / "meta.properties").write_text("version=1\nnode.id=7\n")
    with pytest.raises(ForeignLogDirectory, match="KRaft"):
        broker.start()


def test_a_directory_is_used_by_one_process(broker: Broker) -> None:
    """Two brokers never write to one directory, and the second is told so."""
    with pytest.raises(LogDirectoryInUse):
        LogManager(broker.paths[:1], US).start()


# -- topics -------------------------------------------------------------------------------------------------------


def test_deleted_partitions_go_in_a_while(broker: Broker) -> None:
    """A deleted partition is gone at once and its files after file.delete.delay.ms, also over a restart.

    See docs/since-2011.md.
    """
    broker.send(b"v")
    broker.send(b"v", partition=1)
    part = broker.log().locate(0, 100, 1)
    assert part is not None
    broker.manager.delete("clicks", 0)
    broker.manager.delete("clicks", 1)

    assert broker.manager.get("clicks", 0) is None
    assert broker.manager.remove_deleted() == 0
    assert len(part.read()) == part.size, "who is being sent a part of it still gets it"
    broker.clock.advance(60)
    assert broker.manager.remove_deleted() == 2
    assert broker.send(b"new") == 0
    broker.manager.delete("clicks", 0)
    broker.restart()
    assert broker.manager.remove_deleted() == 1
    assert [entry.name for path in broker.paths for entry in os.scandir(path) if entry.is_dir()] == []


def test_a_topic_made_again_under_the_same_name_begins_anew(broker: Broker) -> None:
    """The log of a deleted topic does not become the log of another with its name (KIP-516)."""
    broker.send(b"old")
    log = broker.manager.get_or_create("clicks", 0, uuid.UUID(int=99))

    assert (log.log_end_offset, log.topic_id) == (0, uuid.UUID(int=99))


def test_settings_change_while_it_runs(broker: Broker) -> None:
    """reconfigure reaches every log of the topic and no other."""
    log, other = broker.log(), broker.log(topic="views")
    broker.manager.reconfigure("clicks", LogConfig(segment_bytes=100))
    broker.send(b"a")
    broker.send(b"b")

    assert len(log.segments) == 2
    assert other.config == SMALL


@pytest.mark.parametrize("name", ["..", "a/b", "", "x" * 250, "a\0b"])
def test_names_cannot_leave_the_directory(broker: Broker, name: str) -> None:
    """A topic's name that is no directory's name is refused before anything is made."""
    with pytest.raises(IllegalTopicName):
        broker.manager.get_or_create(name, 0)


# -- damage -------------------------------------------------------------------------------------------------------


CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.LOG_STARTS,
    checkpoint.CLEANED_TO,
)
RUBBISH = (b"1\n0\n", b"0\n5\nclicks 0 1\n", b"0\n1\nclicks zero 1\n", b"\xff\xfe", b"0\n1\n1 2 3 4\n")


@pytest.mark.parametrize("content", RUBBISH)
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_damaged_checkpoint_is_named_and_costs_nothing(broker: Broker, name: str, content: bytes) -> None:
    """A checkpoint that cannot be read is set aside and named; every record is still there (issue 25, bad input)."""
    broker.send(b"v")
    broker.manager.close(clean=False)
    home = next(path for path in broker.paths if (path / "clicks-0").exists())
    (home / name).write_bytes(content)
    broker.start()

    assert broker.log().log_end_offset == 1
    assert [event.file for event in broker.events(CheckpointIgnored)] == [f"{name}.damaged"]  # type: ignore[attr-defined]
    assert (home / f"{name}.damaged").read_bytes() == content


def test_damaged_leader_epochs_are_made_again_from_the_log(broker: Broker) -> None:
    """The batches carry their epochs: a damaged file of epochs is rebuilt and named."""
    broker.send(b"v")
    directory = broker.log().directory
    broker.manager.close()
    (directory / checkpoint.LEADER_EPOCHS).write_text("0\n7\nrubbish\n")
    broker.start()

    assert [tuple(entry) for entry in broker.log().epochs.entries] == [(0, 0)]
    assert len(broker.events(EpochsRebuilt)) == 1


def test_one_bad_partition_does_not_disturb_the_others(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that cannot be opened is offline with its reason; the others are served."""
    broker.send(b"v")
    broker.send(b"v", partition=1)
    broker.manager.close()
    real = broker.manager._open.__func__  # type: ignore[attr-defined]

    def unlucky(self: LogManager, directory: object, partition: object, config: object, *, is_new: bool) -> object:
        if partition == ("clicks", 0):
            raise LogCorrupt("nobody can read this")
        return real(self, directory, partition, config, is_new=is_new)

    monkeypatch.setattr(LogManager, "_open", unlucky)
    broker.start()

    with pytest.raises(LogCorrupt, match="nobody can read this"):
        broker.manager.get("clicks", 0)
    assert broker.log(1).log_end_offset == 1
    assert len(broker.events(ModernLogOffline)) == 1


def test_foreign_entries_are_left_alone(broker: Broker) -> None:
    """Directories that are no partition's are named and left as they are."""
    broker.manager.close()
    (broker.paths[0] / "lost+found").mkdir()
    (broker.paths[0] / "notes.txt").write_text("plain files are nobody's business")
    broker.start()

    assert [event.entry for event in broker.events(StrayDirectory)] == ["lost+found"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("failpoint", ["modern.append.before_write", "modern.flush.before_fsync"])
def test_a_disk_that_fails_takes_its_own_logs_offline(broker: Broker, failpoint: str) -> None:
    """A failed write or sync names the directory and takes its partitions offline; the others go on (issue 25)."""
    broker.send(b"v")
    broker.send(b"v", partition=1)
    log, home = broker.log(), broker.log().directory.parent
    with activate(failpoint, "raise:EIO@1"), pytest.raises(LogFailed):
        broker.send(b"w")
        log.flush()

    with pytest.raises(LogDirectoryFailed, match="is offline"):
        broker.manager.get("clicks", 0)
    assert [event.directory for event in broker.events(LogDirectoryOffline)] == [str(home)]  # type: ignore[attr-defined]
    assert broker.send(b"w", partition=1) == 1
    assert broker.log(5).directory.parent != home
    with pytest.raises(LogDirectoryFailed):
        broker.manager.get_or_create("views", 0, is_new=False)
    broker.manager.close()
    assert not (home / ".kafka_cleanshutdown").exists()
    broker.start()
    assert broker.log().log_end_offset >= 1


def test_a_full_disk_refuses_appends_and_nothing_else(broker: Broker) -> None:
    """Without room nothing of an append is kept; when there is room again appends go on."""
    broker.send(b"v")
    with activate("modern.append.after_write", "raise:ENOSPC@1"), pytest.raises(LogFull):
        broker.send(b"w")

    assert broker.log().log_end_offset == 1
    assert broker.send(b"x") == 1
    broker.crash()
    assert broker.log().log_end_offset == 2


def test_a_directory_that_cannot_be_used_does_not_stop_the_others(broker: Broker) -> None:
    """A start with one unusable directory of two serves the other; with none it refuses."""
    broker.manager.close()
    for path in broker.paths:
        shutil.rmtree(path)
        path.write_text("a file, where a directory should be")
    with pytest.raises(LogFailed, match="no log directory can be used"):
        broker.start()
    broker.paths[1].unlink()
    broker.start()

    assert broker.log().directory.parent == broker.paths[1]


# -- upkeep -------------------------------------------------------------------------------------------------------


def test_flush_by_count_by_time_and_at_a_roll(broker: Broker) -> None:
    """flush.messages and flush.ms flush what is due; by default only full segments are forced to disk.

    See docs/since-2011.md.
    """
    for number in range(30):
        broker.send(b"value %d" % number)
    log = broker.log()

    assert broker.manager.flush_due() == 1
    assert log.recovery_point == log.active.base_offset < 30
    assert broker.manager.flush_due() == 0
    log.reconfigure(LogConfig(flush_messages=1))
    assert broker.manager.flush_due() == 1
    assert log.recovery_point == 30
    log.reconfigure(LogConfig(flush_ms=5_000))
    broker.send(b"w")
    assert broker.manager.flush_due() == 0
    broker.clock.advance(5)
    assert broker.manager.flush_due() == 1
    assert log.recovery_point == 31


def test_retention_runs_over_all_logs(broker: Broker) -> None:
    """What is older than retention.ms goes from every log, and the log start is kept over a crash.

    See docs/since-2011.md.
    """
    for partition in range(2):
        for number in range(30):
            broker.send(b"value %d" % number, partition=partition)
    broker.clock.advance(8 * 86_400)

    assert broker.manager.retain() > 2
    assert [log.log_start_offset for log in broker.manager.logs()] == [30, 30]
    broker.crash()
    assert [log.log_start_offset for log in broker.manager.logs()] == [30, 30]


def test_the_cleaner_takes_the_dirtiest_log(broker: Broker) -> None:
    """Compacted logs are cleaned, the dirtiest first, and how far is remembered over a restart (docs/since-2011.md)."""
    broker.config = LogConfig(cleanup_policy=("compact",), segment_bytes=600, index_interval_bytes=100)
    for partition in (0, 0, 1):
        for number in range(30):
            broker.send(b"value %d" % number, partition=partition)
        broker.log(partition).roll()
        if not broker.events(ModernLogCleaned):
            assert broker.manager.clean() is not None
    rounds = []
    while (done := broker.manager.clean()) is not None:
        rounds.append((done.log.partition, done.cleaned_to))

    assert rounds == [(1, 30), (0, 60)], "of the first one a part was clean already"
    assert all(log.size < 200 for log in broker.manager.logs())
    assert len(broker.events(ModernLogCleaned)) == 3
    broker.restart()
    assert broker.manager.clean() is None


def test_upkeep_runs_in_threads_and_survives_a_failing_job(tmp_path: Path) -> None:
    """Flushing, checkpoints, deletion and cleaning happen by themselves; a job that fails does not end the others."""
    manager = LogManager([tmp_path / "a"], US, lambda topic: SMALL)
    manager.start()
    upkeep = Upkeep(manager, UpkeepSettings(*[0.01] * 8))
    upkeep.workers[1].jobs.insert(0, type(upkeep.workers[1].jobs[0])("bad", lambda: 1 / 0, 0.01, 0.0))
    log = manager.get_or_create("clicks", 0)
    for number in range(30):
        record = Record(0, manager.clock.wall_ms(), b"k", b"value %d" % number)
        log.append(PLAIN.prepare(encode_records([record]), log.config, T), 0)
    manager.delete("clicks", 0)
    manager.get_or_create("clicks", 0)
    upkeep.start()
    points = tmp_path / "a" / checkpoint.RECOVERY_POINTS
    try:
        until(lambda: points.exists() and checkpoint.read_offsets(points) == {("clicks", 0): 0}, "a checkpoint")
        until(lambda: any(e.event.name == "upkeep_failed" for e in manager.journal.since()), "the bad job is named")
    finally:
        upkeep.stop()
        manager.close()

    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()
