"""One of a broker's log directories (``log.dirs``): its lock, whose it is, its checkpoints, how it was left.

    .lock                                held while the broker runs
    meta.properties                      whose it is
    .kafka_cleanshutdown                 everything was flushed and closed; taken away at once at the start
    recovery-point-offset-checkpoint     below it everything is on disk
    replication-offset-checkpoint        high watermarks
    log-start-offset-checkpoint          where logs begin that begin inside a segment
    cleaner-offset-checkpoint            how far logs are cleaned
    <topic>-<partition>/                 the logs

The files are real Kafka's. Directories of the 2011 log are never these: a real broker would cut 2011 segments.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from kafka2011.clock import Clock
from kafka2011.errors import LogCorrupt, LogDirectoryInUse, LogError
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.log.directory import CLEAN_SHUTDOWN, DIRECTORY_MODE, DirectoryLock, set_aside, sync_directory
from since2011.log.checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    Partition,
    read_offsets,
    write_offsets,
)
from since2011.log.events import CheckpointIgnored, StrayDirectory
from since2011.log.identity import Identity, claim
from since2011.log.log import ModernLog
from since2011.log.recovery import open_log
from since2011.log.settings import LogConfig

LOCK = ".lock"
BELOW_LOG_DIR = Path(".modern") / "logs"
"""Where the modern logs lie below ``log.dir``, unless ``log.dirs`` says otherwise."""
DELETE_SUFFIX = "-delete"
_CLEAN = b'{"version":0,"brokerEpoch":-1}'
_NAME = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,10})\Z")
_ASIDE = re.compile(r".*\.[0-9a-f]{32}-(delete|future|stray)\Z")


class LogDirectoryFailed(LogError):
    """The disk of a log directory failed; its partitions are offline until the broker starts anew with a good disk."""

    code = 56  # KAFKA_STORAGE_ERROR


class LogDirectory:
    """Thread: any; checkpoints one at a time."""

    def __init__(self, path: Path, identity: Identity, journal: Journal) -> None:
        self.path, self._identity, self._journal = path, identity, journal
        self.failed: str | None = None
        """Why nothing in it is served any more."""
        self.was_clean = False
        self.offsets: dict[str, dict[Partition, int]] = {}
        """The checkpoints as they were found, by file."""
        self.cleaned_to: dict[Partition, int] = {}
        self.n_logs = 0
        self._lock: LogDirectoryLock | None = None
        self._writing = threading.Lock()

    def __str__(self) -> str:
        return str(self.path)

    # -- start ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Lock it, see whose it is and how it was left. Raises OSError, LogDirectoryInUse, ForeignLogDirectory."""
        self.path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        self._lock = LogDirectoryLock(self.path)
        claim(self.path, self._identity)
        # At once: a crash while loading must count as one.
        self.was_clean = self._take_marker()
        self.offsets = {
            name: self._checkpoint(name) for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANED_TO)
        }
        self.cleaned_to = self.offsets[CLEANED_TO]

    def _take_marker(self) -> bool:
        try:
            (self.path / CLEAN_SHUTDOWN).unlink()
        except FileNotFoundError:
            return False
        sync_directory(self.path)
        return True

    def _checkpoint(self, name: str) -> dict[Partition, int]:
        """A checkpoint; one that cannot be read is set aside, and its logs are read through instead."""
        path = self.path / name
        try:
            return read_offsets(path)
        except LogCorrupt as error:
            aside = set_aside(path, "damaged")
            self._journal.emit(CheckpointIgnored(directory=str(self.path), file=aside.name, reason=str(error)))
            return {}

    def partitions(self) -> tuple[list[Partition], list[Path]]:
        """The partitions in it, and directories of deleted ones."""
        found, doomed = [], []
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            if not entry.is_dir(follow_symlinks=False):
                continue
            parsed = partition_of(entry.name)
            if parsed is not None:
                found.append(parsed)
            elif _ASIDE.match(entry.name) and entry.name.endswith(DELETE_SUFFIX):
                doomed.append(Path(entry.path))
            else:
                self._journal.emit(StrayDirectory(directory=str(self.path), entry=entry.name[:255]))
        return found, doomed

    def open_log(
        self,
        topic: str,
        number: int,
        config: LogConfig,
        *,
        is_new: bool,
        clock: Clock,
        on_failure: Callable[[str], None],
    ) -> ModernLog:
        """Open the log of a partition as it was left; ``is_new``: make it, whatever a checkpoint says of its name."""
        found = {} if is_new else self.offsets
        known = (topic, number)
        return open_log(
            self.path / f"{topic}-{number}",
            topic,
            number,
            config,
            clean=is_new or self.was_clean,
            recovery_point=found.get(RECOVERY_POINTS, {}).get(known, 0),
            log_start=found.get(LOG_STARTS, {}).get(known, 0),
            high_watermark=found.get(HIGH_WATERMARKS, {}).get(known, 0),
            clock=clock,
            journal=self._journal,
            on_failure=on_failure,
        )

    # -- running --------------------------------------------------------------------------------------------------

    def write_checkpoints(self, logs: list[ModernLog]) -> None:
        """What need not be looked at after a crash, where logs begin, how far readers could see."""
        self._write(RECOVERY_POINTS, {(log.topic, log.partition): log.recovery_point for log in logs})
        self._write_log_starts(logs)
        self.write_high_watermarks(logs)

    def write_high_watermarks(self, logs: list[ModernLog]) -> None:
        """How far readers could see."""
        self._write(HIGH_WATERMARKS, {(log.topic, log.partition): log.high_watermark for log in logs})

    def _write_log_starts(self, logs: list[ModernLog]) -> None:
        """Where logs begin, if not with a segment."""
        starts = {
            (log.topic, log.partition): log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write(LOG_STARTS, starts)

    def write_cleaned(self, partition: Partition, offset: int | None) -> None:
        """How far one log is cleaned; None: it is not here any more."""
        with self._writing:
            if offset is None:
                if self.cleaned_to.pop(partition, None) is None:
                    return
            else:
                self.cleaned_to[partition] = offset
            self._write_now(CLEANED_TO, self.cleaned_to)

    def _write(self, name: str, offsets: dict[Partition, int]) -> None:
        with self._writing:
            if self.offsets.get(name) != offsets or not (self.path / name).exists():
                self._write_now(name, offsets)

    def _write_now(self, name: str, offsets: dict[Partition, int]) -> None:
        write_offsets(self.path / name, offsets)
        self.offsets[name] = dict(offsets)

    def put_aside(self, directory: Path) -> Path:
        """Rename the directory of a deleted partition; a start after a crash removes what is left of it."""
        suffix = f".{uuid.uuid4().hex}{DELETE_SUFFIX}"
        topic, _, number = directory.name.rpartition("-")
        aside = self.path / f"{topic[: 255 - len(suffix) - len(number) - 1]}-{number}{suffix}"
        os.rename(directory, aside)
        sync_directory(self.path)
        return aside

    # -- stop -----------------------------------------------------------------------------------------------------

    def leave_marker(self) -> None:
        """Say that everything was flushed and closed."""
        fail_point("modern.close.before_marker")
        fd = os.open(self.path / CLEAN_SHUTDOWN, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, _CLEAN)
            os.fsync(fd)
        finally:
            os.close(fd)
        sync_directory(self.path)

    def release(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class LogDirectoryLock(DirectoryLock):
    """The directory, and ``.lock`` in it, for Java's kind of lock too: that keeps a real Kafka broker out."""

    file_name = LOCK

    def _lock(self, fd: int, *, needed: bool) -> None:
        super()._lock(fd, needed=needed)
        if needed:
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise LogDirectoryInUse(
                    f"{self._directory} is in use by another broker, such as real Kafka; stop it, or give this one "
                    "other log.dirs"
                ) from error


def partition_of(name: str) -> Partition | None:
    """Topic and partition of a directory's name; None if it is not one of a partition."""
    found = _NAME.match(name)
    if found is None or found[1] in (".", "..") or _ASIDE.match(name):
        return None
    number = int(found[2])
    return (found[1], number) if number < 2**31 and str(number) == found[2] else None
