"""All logs of one broker in one directory: ``<log.dir>/<topic>-<partition>/<first offset>.kafka``.

Paper: §3.1 (a partition is a log), §3.1 Stateless broker (retention). The layout is 0.7's (docs/log.md). Only a produce
creates a topic; reading never does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import (
    IllegalTopicName,
    LogCorrupt,
    LogDirectoryInUse,
    LogError,
    LogFull,
    TooManyTopics,
    WrongPartition,
)
from kafka2011.events import Journal
from kafka2011.log.checkpoint import Checkpoint, Missing
from kafka2011.log.directory import DIRECTORY_MODE, DirectoryLock
from kafka2011.log.events import MissingAccepted, PartitionOffline, RetentionHeld, StrayEntry, TopicCreated
from kafka2011.log.log import Log
from kafka2011.log.notes import LastStop, Notes
from kafka2011.log.recovery import Loaded, Recovery
from kafka2011.log.retention import ClockGuard
from kafka2011.log.settings import LogSettings
from kafka2011.types import TopicPartition, is_legal_name


class LogStore:
    """The logs of one data directory. Thread: one; flushing, retention and checkpoints may run in others.

    A partition whose log is damaged is offline: ``get`` raises its LogCorrupt, all others are served. One that has lost
    whole files is served, and named in ``missing`` until somebody accepts it. Without room on the disk (``no_room``)
    everything is served and nothing is taken, until there is room.
    """

    def __init__(
        self,
        directory: Path,
        settings: LogSettings,
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
    ) -> None:
        self.directory, self.settings, self.clock = directory, settings, clock
        self.journal = journal or Journal(clock=clock)
        self.offline: dict[TopicPartition, LogCorrupt] = {}
        # Only added to, by one thread at a time; ``list`` of it is one step for the others.
        self._logs: dict[tuple[str, int], Log] = {}
        self.kind_of_log: Callable[..., Log] = Log
        """What makes a log; a plug-in that decides how far readers may see puts its own kind here, before ``open``."""
        self._names: dict[str, int] = {}
        """Every topic there is, with its number of partitions: what the limits count."""
        self._n_partitions = 0
        self._creating = threading.Lock()
        self.missing: dict[TopicPartition, tuple[Missing, ...]] = {}
        self._notes = Notes(directory, self.journal)
        self._topic_created: list[Callable[[str, int], None]] = []
        self._guard = ClockGuard(clock)
        self._checkpointing = threading.Lock()
        self._lock: DirectoryLock | None = None

    def open(self) -> None:
        """Take the directory for this process, load every partition, recover if the last stop was not clean."""
        self.directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        self._lock = DirectoryLock(self.directory)
        try:
            stop = self._notes.read()
            found = self._partitions_on_disk()
            for where in found:
                self._load(where, stop)
            for where in sorted(self._notes.partitions() - set(found)):
                self._load_gone(where, stop)
            self.checkpoint()
        except BaseException:
            self._lock.release()
            self._lock = None
            raise

    def close(self) -> None:
        """Flush and close every log; leave the clean-shutdown marker if all went well. May be called twice."""
        if self._lock is None:
            return
        clean = True
        for log in self.logs():
            try:
                log.close()
                clean = clean and not log.failed
            except LogError:
                # The log has told the journal; without the marker it is recovered at the next start.
                clean = False
        with self._checkpointing:
            self._notes.write(self._checkpoint(closed=clean))
            lock, self._lock = self._lock, None
        if clean:
            self._notes.leave_marker()
        lock.release()

    def get(self, topic: str, partition: int) -> Log | None:
        """The log, or None if nothing was ever appended to it.

        Raises IllegalTopicName, WrongPartition, or LogCorrupt if the partition is offline.
        """
        log = self._logs.get((topic, partition))
        if log is not None and partition < self.settings.partition_count(topic):
            return log
        self._check(topic, partition)
        if (where := TopicPartition(topic, partition)) in self.offline:
            raise LogCorrupt(*self.offline[where].args)
        return None

    def get_or_create(self, topic: str, partition: int) -> Log:
        """The log; its directory, and the topic, are created if need be."""
        log = self.get(topic, partition)
        if log is None:
            log, is_new = self.create(topic, partition)
            if is_new:
                self.announce(topic)
        return log

    def create(self, topic: str, partition: int) -> tuple[Log, bool]:
        """Make the log unless it is there; True if its topic is new: then ``announce`` it. Thread: any, may block.

        Raises as ``get`` does, and TooManyTopics or LogFull; then nothing is left of it.
        """
        with self._creating:
            log = self.get(topic, partition)
            if log is not None:
                return log, False
            is_new = topic not in self._names
            if is_new:
                self.check_room(1, self.partition_count(topic))
            log = self._logs[topic, partition] = self._create(TopicPartition(topic, partition))
            self._count(topic)
        if is_new:
            self.journal.emit(TopicCreated(topic=topic, partition=partition))
        return log, is_new

    def has_topic(self, topic: str) -> bool:
        """Whether anything of ``topic`` is here."""
        return topic in self._names

    def announce(self, topic: str) -> None:
        """Tell whoever wants to know that there is a new topic."""
        for callback in self._topic_created:
            callback(topic, self.partition_count(topic))

    def check_room(self, n_topics: int, n_partitions: int) -> None:
        """Raise TooManyTopics unless this broker may hold so many more."""
        most_topics, most_partitions = self.settings.max_topics, self.settings.max_partitions
        if len(self._names) + n_topics > most_topics:
            raise TooManyTopics(
                f"no more topics are created: this broker holds {len(self._names)}, max.topics is {most_topics}"
            )
        if self._n_partitions + n_partitions > most_partitions:
            raise TooManyTopics(
                f"no more topics are created: this broker holds {self._n_partitions} partitions, {n_partitions} more "
                f"are wanted, max.partitions is {most_partitions}"
            )

    def _count(self, topic: str) -> None:
        if topic not in self._names:
            self._names[topic] = self.partition_count(topic)
            self._n_partitions += self._names[topic]

    def on_topic_created(self, callback: Callable[[str, int], None]) -> None:
        """Call ``callback(topic, n_partitions)`` for every topic created from now on."""
        self._topic_created.append(callback)

    def partition_count(self, topic: str) -> int:
        """How many partitions this broker has of ``topic`` by configuration."""
        return self.settings.partition_count(topic)

    def takes(self, topic: str, partition: int) -> bool:
        """Whether an append has a chance: the partition is neither damaged nor one that the disk has failed."""
        log = self._logs.get((topic, partition))
        return not log.failed if log is not None else TopicPartition(topic, partition) not in self.offline

    def topics(self) -> dict[str, list[int]]:
        """The topics with the partitions that are present."""
        found: dict[str, list[int]] = {}
        offline = ((where.topic, where.partition) for where in self.offline)
        for topic, partition in sorted([*self._logs, *offline]):
            found.setdefault(topic, []).append(partition)
        return found

    def logs(self) -> list[Log]:
        """Every log that is served."""
        return list(self._logs.values())

    def apply_retention(self) -> list[tuple[Log, int]]:
        """Delete what is too old or too much; return each log that lost segments, with their number. Blocks."""
        jump_s = self._guard.jump_s()
        if jump_s:
            self.journal.emit(RetentionHeld(jump_s=jump_s))
        deleted = []
        room = self.settings.max_deletes_per_pass
        for log in self.logs():
            n = log.retain(by_age=self._guard.believed, at_most=room, forget=self.checkpoint)
            if n:
                deleted.append((log, n))
                room -= n
        self.checkpoint()
        return deleted

    @property
    def no_room(self) -> str | None:
        """Why the disk takes nothing at the moment, and what to do, if so."""
        return self._notes.no_room

    def checkpoint(self) -> None:
        """Write the recovery points and the inventory. A failure costs only a longer scan at the next start."""
        with self._checkpointing:
            self._notes.write(self._checkpoint())

    def maybe_checkpoint(self) -> None:
        """Write them if anything was flushed or deleted since, or if the last try failed. Blocks."""
        with self._checkpointing:
            now = self._checkpoint()
            if self._lock is not None and not self._notes.is_written(now):
                try:
                    self._lock.complete()
                except (OSError, LogDirectoryInUse) as error:
                    self._notes.failed("lock", error)
                self._notes.write(now)

    def accept_missing(self) -> list[Missing]:
        """Note that somebody knows what is missing: it is not told any more. Returns what it was. Blocks."""
        missing, self.missing = self.missing, {}
        for where in missing:
            self.journal.emit(MissingAccepted(topic=where.topic, partition=where.partition))
        self.checkpoint()
        return [one for gone in missing.values() for one in gone]

    def _checkpoint(self, closed: bool = False) -> Checkpoint:
        points = {str(TopicPartition(log.topic, log.partition)): log.recovery_point() for log in self.logs()}
        points |= {str(where): point for where in self.offline if (point := self._notes.point(where))}
        return Checkpoint(points, {str(where): gone for where, gone in self.missing.items()}, closed)

    def _check(self, topic: str, partition: int) -> None:
        if not is_legal_name(topic, self.settings.max_topic_name_length):
            raise IllegalTopicName(
                f"{topic[:250]!r} cannot be a topic: use 1 to {self.settings.max_topic_name_length} letters, digits, "
                "dots, dashes or underscores"
            )
        count = self.settings.partition_count(topic)
        if not 0 <= partition < count:
            raise WrongPartition(f"{topic} has partitions 0 to {count - 1} on this broker, not {partition}")

    def _create(self, where: TopicPartition) -> Log:
        directory = self.directory / str(where)
        try:
            if directory.is_symlink():
                raise LogCorrupt(f"partition {where} is offline: {directory} is a symbolic link")
            directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
            return self._opened(where, self._recovery(where).create())
        except OSError as error:
            with suppress(OSError):
                directory.rmdir()  # or the next start would find a topic that never was
            raise LogFull(f"the directory of {where} cannot be made: {error}; try again later") from error

    def _load(self, where: TopicPartition, stop: LastStop) -> None:
        try:
            loaded = self._recovery(where).load(stop, self._notes.point(where))
            self._logs[where.topic, where.partition] = self._opened(where, loaded)
            self._note_missing(where, loaded)
        except (LogCorrupt, OSError) as error:
            reason = str(error) if isinstance(error, LogCorrupt) else f"partition {where} is offline: {error}"
            self.offline[where] = LogCorrupt(reason)
            self.journal.emit(PartitionOffline(topic=where.topic, partition=where.partition, reason=reason))
        self._count(where.topic)

    def _load_gone(self, where: TopicPartition, stop: LastStop) -> None:
        """A partition's directory is gone: the log goes on, empty, after the last offset that was given out."""
        try:
            (self.directory / str(where)).mkdir(mode=DIRECTORY_MODE)
        except OSError as error:
            self._notes.failed("directory", error)
        self._load(where, stop)

    def _note_missing(self, where: TopicPartition, loaded: Loaded) -> None:
        """Keep what was missing before and is still, and what is missing now."""
        back = {s.start for s in loaded.segments}
        named = {one.name for one in loaded.missing}
        still = [one for one in self._notes.missing(where) if one.start not in back and one.name not in named]
        if still or loaded.missing:
            self.missing[where] = (*still, *loaded.missing)

    def _recovery(self, where: TopicPartition) -> Recovery:
        return Recovery(where, self.directory / str(where), self.settings, self.clock, self.journal)

    def _opened(self, where: TopicPartition, loaded: Loaded) -> Log:
        log = self.kind_of_log(
            where.topic,
            where.partition,
            self.directory / str(where),
            loaded.segments,
            self.settings,
            clock=self.clock,
            journal=self.journal,
        )
        log.on_sealed = self.checkpoint
        return log

    def _partitions_on_disk(self) -> list[TopicPartition]:
        found = []
        with os.scandir(self.directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                topic, dash, number = entry.name.rpartition("-")
                if entry.name.startswith(".") and not number.isdigit():
                    continue  # the lock, the marker, the recovery points; what plug-ins keep
                if entry.is_symlink() or not entry.is_dir(follow_symlinks=False):
                    reason = "a symbolic link" if entry.is_symlink() else "not a directory"
                elif not (dash and number.isascii() and number.isdigit() and str(int(number)) == number):
                    reason = "not named <topic>-<partition>"
                elif not is_legal_name(topic, 255):
                    reason = "not a legal topic name"
                else:
                    found.append(TopicPartition(topic, int(number)))
                    continue
                self.journal.emit(StrayEntry(path=entry.path, reason=reason))
        return found
