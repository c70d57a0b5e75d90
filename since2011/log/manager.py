"""All modern logs of one broker, in one directory or several (``log.dirs``).

    start   lock each directory, see whose it is, open its logs (batch by batch where the last stop was not clean)
    close   close each log, write the checkpoints, and last of all the mark of a clean stop

A directory whose disk fails is named and takes its logs offline; the others go on. A partition that is damaged takes no
appends, or is offline by itself. The paper's answer (§3.1): one directory, and a broker that stops when its disk does.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import IllegalTopicName, LogCorrupt, LogError, LogFailed
from kafka2011.events import Journal
from since2011.log.checkpoint import Partition
from since2011.log.events import (
    LogDirectoryOffline,
    ModernLogCreated,
    ModernLogDeleted,
    ModernLogOffline,
    ModernLogsLoaded,
)
from since2011.log.identity import Identity, write_topic_id
from since2011.log.log import ModernLog
from since2011.log.log_cleaner import CleanerRound, CleanerSettings, LogCleaner
from since2011.log.log_directory import LogDirectory, LogDirectoryFailed, partition_of
from since2011.log.recovery import PRODUCER_EXPIRATION_MS
from since2011.log.retention import apply_retention
from since2011.log.settings import LogConfig

THREADS = 8
"""That open or close the logs of one directory: what is waited for is the disk."""


class LogManager:
    """The modern logs of a broker. Thread: any.

    ``config_of`` tells a topic's settings when its logs are opened; ``reconfigure`` changes them later.
    """

    def __init__(
        self,
        directories: Iterable[Path],
        identity: Identity,
        config_of: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
        cleaner: CleanerSettings | None = None,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    ) -> None:
        self.clock, self.journal = clock, journal or Journal(clock=clock)
        self.directories = [LogDirectory(path, identity, self.journal) for path in directories]
        self._config_of = config_of
        self._expiration_ms = producer_expiration_ms
        self._logs: dict[Partition, ModernLog] = {}
        self._homes: dict[Partition, LogDirectory] = {}
        self.offline: dict[Partition, LogError] = {}
        """Partitions that could not be opened, or whose directory failed, and why."""
        self._doomed: list[tuple[float, Path]] = []
        """Directories of deleted partitions, and from when on they may be removed."""
        self._changing = threading.RLock()
        self.cleaner = LogCleaner(cleaner or CleanerSettings(), clock, self.journal)

    # -- start and stop -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open everything. Raises LogDirectoryInUse, ForeignLogDirectory, LogFailed if no directory is left."""
        opened: list[LogDirectory] = []
        try:
            for directory in self.directories:
                try:
                    directory.open()
                    opened.append(directory)
                except OSError as error:
                    self.fail_directory(directory, f"cannot be opened: {error}")
            if not opened:
                raise LogFailed(f"no log directory can be used: {'; '.join(str(d.failed) for d in self.directories)}")
            for directory in opened:
                self._load(directory)
        except BaseException:
            self.close(clean=False)
            raise

    def _load(self, directory: LogDirectory) -> None:
        began = self.clock.monotonic()
        try:
            partitions, doomed = directory.partitions()
            self._doomed += [(0.0, path) for path in doomed]
            for partition in partitions:
                other = self._homes.setdefault(partition, directory)
                if other is not directory:
                    name = f"{partition[0]}-{partition[1]}"
                    raise LogFailed(f"{name} lies in {other} and in {directory}: remove one of the two")
            with ThreadPoolExecutor(THREADS, "log-recovery") as pool:
                list(pool.map(partial(self._open_one, directory), partitions))
        except OSError as error:
            self.fail_directory(directory, f"cannot be read: {error}")
            return
        seconds = round(self.clock.monotonic() - began, 3)
        n_partitions = len(self._logs_in(directory))
        self.journal.emit(
            ModernLogsLoaded(
                directory=str(directory), n_partitions=n_partitions, was_clean=directory.was_clean, seconds=seconds
            )
        )

    def _open_one(self, directory: LogDirectory, partition: Partition) -> None:
        topic, number = partition
        try:
            self._keep(directory, self._open(directory, partition, self._config_of(topic), is_new=False))
        except OSError:
            raise
        except Exception as error:  # whatever it is, the other partitions are served
            self.offline[partition] = LogCorrupt(f"{topic}-{number} is offline: {error}")
            self.journal.emit(
                ModernLogOffline(topic=topic, partition=number, directory=str(directory), reason=str(error))
            )

    def _open(self, directory: LogDirectory, partition: Partition, config: LogConfig, *, is_new: bool) -> ModernLog:
        topic, number = partition
        return directory.open_log(
            topic,
            number,
            config,
            is_new=is_new,
            clock=self.clock,
            on_failure=lambda reason: self.fail_directory(directory, f"{topic}-{number}: {reason}"),
        )

    def _keep(self, directory: LogDirectory, log: ModernLog) -> None:
        with self._changing:
            partition = (log.topic, log.partition)
            self._logs[partition], self._homes[partition] = log, directory
            directory.n_logs += 1
            self.offline.pop(partition, None)

    def close(self, *, clean: bool = True) -> None:
        """Close every log; ``clean``: so that the next start need not look at them."""
        for directory in self.directories:
            logs = self._logs_in(directory)
            whole = clean and directory.failed is None
            with ThreadPoolExecutor(THREADS, "log-close") as pool:
                whole = all(list(pool.map(partial(_close, clean=whole), logs))) and whole
            if whole and directory.failed is None:
                self._leave(directory, logs)
            directory.release()
        self._logs.clear()

    def _leave(self, directory: LogDirectory, logs: list[ModernLog]) -> None:
        try:
            directory.write_checkpoints(logs)
            directory.leave_marker()
        except OSError as error:
            self.fail_directory(directory, f"cannot be closed: {error}")

    # -- partitions -----------------------------------------------------------------------------------------------

    def logs(self) -> list[ModernLog]:
        """Every log that is served."""
        return list(self._logs.values())

    def get(self, topic: str, partition: int) -> ModernLog | None:
        """The log of a partition; None if there is none here. Raises why it is offline."""
        log = self._logs.get((topic, partition))
        if log is None and (topic, partition) in self.offline:
            raise self.offline[topic, partition]
        return log

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: uuid.UUID | None = None,
        config: LogConfig | None = None,
        *,
        is_new: bool = True,
    ) -> ModernLog:
        """The log of a partition, made in the directory with the fewest logs if there is none.

        ``is_new``: nobody has written to this partition yet. One that is not new is never made while a directory is
        offline, because it may lie there. A log of another topic of the same name, that was deleted while this broker
        was away, makes room.
        """
        with self._changing:
            log = self.get(topic, partition)
            if log is not None and not self._is_other_topic(log, topic_id):
                return log
            if log is not None:
                self.delete(topic, partition)
            return self._create(topic, partition, topic_id, config or self._config_of(topic), is_new)

    def _is_other_topic(self, log: ModernLog, topic_id: uuid.UUID | None) -> bool:
        if topic_id is not None and log.topic_id is None:
            log.topic_id = topic_id
            write_topic_id(log.directory, topic_id)
        return topic_id is not None and log.topic_id != topic_id

    def _create(
        self, topic: str, partition: int, topic_id: uuid.UUID | None, config: LogConfig, is_new: bool
    ) -> ModernLog:
        if partition_of(f"{topic}-{partition}") != (topic, partition):
            raise IllegalTopicName(f"{topic[:80]!r}, partition {partition}: a name has 1 to 249 letters, digits, . _ -")
        failed = [directory for directory in self.directories if directory.failed is not None]
        usable = [directory for directory in self.directories if directory.failed is None]
        if not usable or (failed and not is_new):
            raise LogDirectoryFailed(f"{topic}-{partition} may lie in {failed[0]}, offline: {failed[0].failed}")
        directory = min(usable, key=lambda usable: usable.n_logs)
        try:
            log = self._open(directory, (topic, partition), config, is_new=True)
            if topic_id is not None:
                log.topic_id = topic_id
                write_topic_id(log.directory, topic_id)
        except OSError as error:
            self.fail_directory(directory, f"{topic}-{partition} cannot be made: {error}")
            raise LogDirectoryFailed(f"{directory} failed: {error}") from error
        self._keep(directory, log)
        self.journal.emit(ModernLogCreated(topic=topic, partition=partition, directory=str(directory)))
        return log

    def delete(self, topic: str, partition: int) -> bool:
        """Take a partition away; its files go after ``file.delete.delay.ms``. False if there is none."""
        known = (topic, partition)
        with self._changing:
            log, directory = self._logs.pop(known, None), self._homes.pop(known, None)
            self.offline.pop(known, None)
            if directory is None or directory.failed is not None:
                return False
            directory.n_logs -= log is not None
        delay_ms = 0
        if log is not None:
            with log.rewriting, log.lock:
                log.failed = "it was deleted"
                log.close(clean=False)
            delay_ms = log.config.file_delete_delay_ms
        aside = directory.put_aside(directory.path / f"{topic}-{partition}")
        self._doomed.append((self.clock.monotonic() + delay_ms / 1000, aside))
        directory.write_cleaned(known, None)
        self.journal.emit(ModernLogDeleted(topic=topic, partition=partition, directory=str(directory)))
        return True

    def reconfigure(self, topic: str, config: LogConfig) -> None:
        """Go on with other settings for a topic's logs."""
        for log in self.logs():
            if log.topic == topic:
                log.reconfigure(config)

    # -- failures -------------------------------------------------------------------------------------------------

    def fail_directory(self, directory: LogDirectory, reason: str) -> None:
        """The disk of a directory failed: none of its logs is served any more."""
        with self._changing:
            if directory.failed is not None:
                return
            directory.failed = reason
            gone = [known for known, home in self._homes.items() if home is directory]
            for known in gone:
                self.offline[known] = LogDirectoryFailed(f"{known[0]}-{known[1]} is offline: {directory} {reason}")
                log = self._logs.pop(known, None)
                if log is not None:
                    log.failed = f"{directory} {reason}"
        self.journal.emit(LogDirectoryOffline(directory=str(directory), n_partitions=len(gone), reason=reason))

    def _logs_in(self, directory: LogDirectory) -> list[ModernLog]:
        return [log for known, log in list(self._logs.items()) if self._homes.get(known) is directory]

    # -- upkeep: each of these is called from time to time, in a thread --------------------------------------------

    def flush_due(self) -> int:
        """Flush logs by ``flush.messages`` and ``flush.ms``, and segments that are full; how many logs that were."""
        n_flushed = 0
        for log in self.logs():
            try:
                if log.should_flush():
                    log.flush()
                elif log.recovery_point < log.active.base_offset:
                    log.flush_rolled()
                else:
                    continue
                n_flushed += 1
            except LogFailed:
                continue  # its directory is offline and named
        return n_flushed

    def retain(self) -> int:
        """Delete segments that are too old, too many or below the log start; how many went."""
        n_gone = 0
        for log in self.logs():
            try:
                n_gone += apply_retention(log)
            except FileNotFoundError:
                continue  # the partition was deleted meanwhile
            except OSError as error:
                self.fail_directory(self._homes[log.topic, log.partition], f"{log}: {error}")
        return n_gone

    def clean(self) -> CleanerRound | None:
        """Clean the dirtiest log, if one is dirty enough."""
        homes = {log: self._homes[log.topic, log.partition] for log in self.logs() if log.config.compacted}
        return self.cleaner.clean_one(homes)

    def expire_producers(self) -> int:
        """Forget producers that have not written for ``producer.id.expiration.ms``; how many."""
        before = self.clock.wall_ms() - self._expiration_ms
        n_expired = 0
        for log in self.logs():
            with log.lock:
                n_expired += len(log.producers.expire(before))
        return n_expired

    def remove_deleted(self) -> int:
        """Remove the files of partitions that were deleted a while ago; of how many."""
        due = [entry for entry in self._doomed if entry[0] <= self.clock.monotonic()]
        for entry in due:
            shutil.rmtree(entry[1], ignore_errors=True)
            self._doomed.remove(entry)
        return len(due)

    def checkpoint(self) -> None:
        """Write recovery points, log starts and high watermarks."""
        self._everywhere(LogDirectory.write_checkpoints)

    def checkpoint_high_watermarks(self) -> None:
        """Write high watermarks only, which change all the time."""
        self._everywhere(LogDirectory.write_high_watermarks)

    def _everywhere(self, write: Callable[[LogDirectory, list[ModernLog]], None]) -> None:
        for directory in self.directories:
            if directory.failed is None:
                try:
                    write(directory, self._logs_in(directory))
                except OSError as error:
                    self.fail_directory(directory, str(error))


def _close(log: ModernLog, *, clean: bool) -> bool:
    """Close a log; whether the next start may believe its files."""
    try:
        log.close(clean=clean)
    except LogFailed:  # the directory was taken offline and named
        return False
    return True
