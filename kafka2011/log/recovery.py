"""Load one partition's segments, and after an unclean stop find out what can be trusted.

Paper: §3.3 ("if there is any I/O error on the broker, Kafka runs a recovery process to remove those messages with
inconsistent CRCs").

Differs: removing everything after the first bad CRC is right for a write that was cut off, and wrong for a bit that
flipped in data consumers have seen (docs/paper-vs-code.md). So there are three outcomes:

    torn tail     nothing intact follows, and it lies above the recovery point    cut off, bytes reported
    damage        intact messages follow, or a file lost flushed bytes            quarantined: LogCorrupt, file kept
    missing       a whole file is gone (by the inventory of the checkpoint)       named; the rest is served
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kafka2011.clock import Clock
from kafka2011.errors import LogCorrupt
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.log import inventory
from kafka2011.log.checkpoint import KeptFile, Missing, RecoveryPoint
from kafka2011.log.directory import NO_ROOM, set_aside, sync_directory
from kafka2011.log.events import FileMissing, LogRecovered, SegmentQuarantined, SegmentSetAside, TailTruncated
from kafka2011.log.notes import LastStop
from kafka2011.log.scan import intact_until, something_follows
from kafka2011.log.segment import SUFFIX, Segment, segment_name, start_of
from kafka2011.log.segment_list import SegmentList
from kafka2011.log.settings import LogSettings
from kafka2011.types import TopicPartition

QUARANTINED = "corrupt"
_SET_ASIDE = re.compile(r"([0-9]{1,20})\.kafka\.(?:aside|corrupt|stray|unflushed)[0-9]*\Z")
_WAS_QUARANTINED = (
    "was quarantined; get its messages with `kafka2011 log salvage`, then go on without them by "
    "log.corrupt.policy=truncate"
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A partition that can be served, and the files of it that are gone."""

    segments: SegmentList
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovery:
    """Load the partition in ``directory``; what happens is told to ``journal``."""

    where: TopicPartition
    directory: Path
    settings: LogSettings
    clock: Clock
    journal: Journal

    def create(self) -> Loaded:
        """Begin a partition at offset 0, or go on with what is in its directory."""
        found = self._on_disk()
        return Loaded(SegmentList(found or [Segment.create(self.directory, 0, self.clock.wall_ms())]))

    def load(self, stop: LastStop, point: RecoveryPoint | None) -> Loaded:
        """The segments, checked as far as needed. Raises LogCorrupt if the partition must stay offline."""
        clean = stop.clean
        if self.settings.corrupt_policy == "truncate" and self._bring_back_quarantined():
            clean = False
        segments = self._without_resurrected(self._on_disk(), point)
        if not segments and (point is None or not point.flushed_offset):
            return Loaded(SegmentList([self._made(self._empty(0))]))
        gone = [] if point is None else self._gone(segments, point, stop)
        if not clean and segments:
            segments = self._recover(segments, point)
        if point is not None and (not segments or segments[-1].end < point.flushed_offset):
            if segments and not (gone and gone[-1].start >= segments[-1].end):
                self._missing(segments[-1], point.flushed_offset)
            else:
                segments = [*segments, self._empty(self._beyond(gone, point, stop))]
        self._check_gaps(segments, point)
        if not segments[-1].size:
            self._made(segments[-1])
        return Loaded(SegmentList(segments, _whole_from(segments)), self._named(gone, segments))

    def _gone(self, segments: list[Segment], point: RecoveryPoint, stop: LastStop) -> list[KeptFile]:
        """The files that were written down and that nobody had a right to delete."""
        if point.files is None:
            rest = KeptFile(point.first_offset, point.flushed_offset - point.first_offset, 0)
            return [] if segments or not rest.size else [rest]
        aside = {int(name[1]) for name in map(_SET_ASIDE.match, os.listdir(self.directory)) if name}
        return inventory.gone(
            point.files,
            {segment.start for segment in segments} | aside,
            sum(segment.size for segment in segments),
            self.settings,
            self.where.topic,
            now_ms=self.clock.wall_ms(),
            foreign=stop.foreign,
        )

    def _beyond(self, gone: list[KeptFile], point: RecoveryPoint, stop: LastStop) -> int:
        last = gone[-1].start if gone else point.flushed_offset
        file_size = self.settings.file_size_of(self.where.topic)
        return inventory.beyond(last, point.flushed_offset, file_size, exact=stop.exact)

    def _empty(self, start: int) -> Segment:
        return Segment(start, self.directory / segment_name(start), 0, self.clock.wall_ms())

    def _made(self, segment: Segment) -> Segment:
        """See to it that an empty segment has its file. Without room on the disk the first append makes it."""
        try:
            segment.make()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
        return segment

    def _named(self, gone: list[KeptFile], segments: list[Segment]) -> tuple[Missing, ...]:
        """Tell what is gone; the offsets of a file go up to the next one that is there."""
        found = []
        starts = [*(segment.start for segment in segments), *(file.start for file in gone)]
        for file in gone:
            name = f"{self.where}/{segment_name(file.start)}"
            later = [start for start in starts if start > file.start]
            one = Missing(name, file.start, min(later, default=file.end))
            found.append(one)
            self.journal.emit(
                FileMissing(
                    topic=self.where.topic, partition=self.where.partition, path=name, start=one.start, end=one.end
                )
            )
        return tuple(found)

    def _on_disk(self) -> list[Segment]:
        segments, names = [], set()
        with os.scandir(self.directory) as entries:
            for entry in entries:
                names.add(entry.name)
                start = start_of(entry.name)
                if start is None:
                    continue
                if not entry.is_file(follow_symlinks=False):
                    raise self._corrupt(f"{entry.path} is not a plain file")
                status = entry.stat(follow_symlinks=False)
                segments.append(Segment(start, Path(entry.path), status.st_size, status.st_mtime_ns // 1_000_000))
        for name in _quarantined(names):
            raise self._corrupt(f"{self.directory / name} {_WAS_QUARANTINED}")
        return sorted(segments, key=lambda segment: (segment.start, segment.size))

    def _bring_back_quarantined(self) -> bool:
        """What an earlier start set aside is looked at again, now that the policy is to go on without it."""
        found = _quarantined(set(os.listdir(self.directory)))
        for name in found:
            os.rename(self.directory / name, self.directory / name.removesuffix(f".{QUARANTINED}"))
        return bool(found)

    def _without_resurrected(self, segments: list[Segment], point: RecoveryPoint | None) -> list[Segment]:
        """Delete again what a power cut brought back: segments that end before the first offset written down."""
        if point is None:
            return segments
        kept = []
        for segment in segments:
            if segment.start < point.first_offset and segment.end <= point.first_offset:
                os.unlink(segment.path)
                self._set_aside(segment.path, "deleted by retention earlier, and back after a crash")
            else:
                kept.append(segment)
        return kept

    def _recover(self, segments: list[Segment], point: RecoveryPoint | None) -> list[Segment]:
        """Scan from the recovery point on; without one the last segment, as 0.7 does (all before it was flushed)."""
        trusted = segments[-1].start if point is None else point.flushed_offset
        scanned = 0
        for index, segment in enumerate(segments):
            if segment.end < trusted or (segment.end == trusted and segment is not segments[-1]):
                continue
            later = segments[index + 1 :]
            fd = os.open(segment.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                begin = max(0, trusted - segment.start)
                good = intact_until(fd, begin, segment.size)
                scanned += segment.size - begin
                short = bool(later) and segment.start + good < later[0].start
                if good == segment.size and not short:
                    os.fsync(fd)
                    continue
                if self._is_damage(fd, segment, good, later):
                    return self._quarantine(segment, good, segments[:index], later)
                self._truncate(fd, segment, good, later)
                return segments[: index + 1]
            finally:
                os.close(fd)
        self.journal.emit(
            LogRecovered(
                topic=self.where.topic,
                partition=self.where.partition,
                recovery_point=trusted,
                end_offset=segments[-1].end,
                size_scanned=scanned,
            )
        )
        return segments

    @staticmethod
    def _is_damage(fd: int, segment: Segment, good: int, later: list[Segment]) -> bool:
        if later and segment.end == later[0].start and any(s.size for s in later):
            # Bytes are wrong, not missing, and whole segments follow.
            return True
        if good == segment.size:
            return False
        with mmap.mmap(fd, segment.size, prot=mmap.PROT_READ) as data:
            return something_follows(data, good, segment.size)

    def _truncate(self, fd: int, segment: Segment, good: int, later: list[Segment]) -> None:
        end = max([segment.end, *(s.end for s in later)])
        fail_point("log.recovery.before_truncate")
        os.ftruncate(fd, good)
        os.fsync(fd)
        fail_point("log.recovery.after_truncate")
        for other in later:
            self._set_aside(set_aside(other.path, "unflushed"), "written after bytes that a crash lost")
        self.journal.emit(
            TailTruncated(
                topic=self.where.topic,
                partition=self.where.partition,
                start=segment.start + good,
                end=end,
                size=segment.size - good + sum(s.size for s in later),
                reason="the last write was not finished",
            )
        )
        segment.size = good

    def _quarantine(
        self, segment: Segment, good: int, before: list[Segment], later: list[Segment]
    ) -> list[Segment]:
        """Keep every byte under another name; then offline, or go on with the intact part, as the policy says."""
        end = max([segment.end, *(s.end for s in later)])
        truncate = self.settings.corrupt_policy == "truncate"
        if truncate:
            prefix = segment.path.with_name(f"{segment.path.name}.tmp")
            _copy(segment.path, prefix, good)
        aside = set_aside(segment.path, QUARANTINED)
        reason = f"damage at offset {segment.start + good}, followed by intact messages"
        self.journal.emit(
            SegmentQuarantined(
                topic=self.where.topic,
                partition=self.where.partition,
                start=segment.start + good,
                end=end,
                path=str(aside),
                policy=self.settings.corrupt_policy,
                reason=reason,
            )
        )
        if not truncate:
            raise self._corrupt(f"{reason}: {aside} {_WAS_QUARANTINED}")
        os.rename(prefix, segment.path)
        sync_directory(self.directory)
        for other in later:
            self._set_aside(set_aside(other.path, "aside"), "follows a quarantined segment")
        segment.size = good
        return [*before, segment]

    def _missing(self, last: Segment, flushed: int) -> None:
        """Flushed bytes are not there: offline, or go on without them, as the policy says; never without a word."""
        reason = f"it ends at {last.end}, but offsets up to {flushed} were flushed"
        if self.settings.corrupt_policy == "offline":
            raise self._corrupt(f"{reason}; restore {last.path}, or accept the loss with the policy truncate")
        self.journal.emit(
            SegmentQuarantined(
                topic=self.where.topic,
                partition=self.where.partition,
                start=last.end,
                end=flushed,
                path=str(last.path),
                policy=self.settings.corrupt_policy,
                reason=reason,
            )
        )

    def _check_gaps(self, segments: list[Segment], point: RecoveryPoint | None) -> None:
        """A gap is accepted behind a file that is as it was written down: what followed it is known to be gone."""
        ends = {file.start: file.end for file in (point and point.files) or ()}
        for one, two in pairwise(segments):
            if one.end == two.start or (one.end < two.start and ends.get(one.start) == one.end):
                continue
            raise self._corrupt(f"{one.path} ends at {one.end}, but the next segment begins at {two.start}")

    def _set_aside(self, path: Path, reason: str) -> None:
        self.journal.emit(
            SegmentSetAside(topic=self.where.topic, partition=self.where.partition, path=str(path), reason=reason)
        )

    def _corrupt(self, reason: str) -> LogCorrupt:
        return LogCorrupt(f"partition {self.where} is offline: {reason}")


def _whole_from(segments: list[Segment]) -> int:
    """The start of the last run of segments without a gap."""
    start = segments[-1].start
    for one, two in pairwise(reversed(segments)):
        if two.end != one.start:
            break
        start = two.start
    return start


def _quarantined(names: set[str]) -> list[str]:
    """The quarantined files that still stand in for their segment."""
    end = f".{QUARANTINED}"
    return sorted(n for n in names if n.endswith(SUFFIX + end) and n.removesuffix(end) not in names)


def _copy(source: Path, target: Path, size: int) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(source, "rb") as data, os.fdopen(fd, "wb") as copy:
        while size and (chunk := data.read(min(size, 1 << 20))):
            copy.write(chunk)
            size -= len(chunk)
        copy.flush()
        os.fsync(fd)
