"""Open a partition's directory: after a clean stop as it is, after any other batch by batch from the recovery point.

    *.deleted, *.cleaned                      go: work that was not finished
    *.swap                                    a finished clean-up: what it replaces goes, it takes the place
    an index that is missing or damaged       is built from the log
    the end of the log is no whole batch      a torn tail: cut
    damage with good batches after it         set aside; what lies before it is served, nothing is appended until told

The paper's answer (§3.3): at the start, messages with a wrong CRC are removed from the log.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Callable
from pathlib import Path

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import InvalidMessage, LogCorrupt, WireError
from kafka2011.events import Journal
from kafka2011.log.directory import set_aside, sync_directory
from since2011.log.checkpoint import LEADER_EPOCHS
from since2011.log.damage import damaged_files
from since2011.log.events import DamageSetAside, EpochsRebuilt, IndexRebuilt, TornTailCut
from since2011.log.files import CLEANED, DELETED, INDEX, LOG, SNAPSHOT, SWAP, file_name, parse_name
from since2011.log.identity import read_topic_id
from since2011.log.log import ModernLog
from since2011.log.producer_replay import restore_producers
from since2011.log.segment import Segment
from since2011.log.settings import LogConfig
from since2011.wire.record_batch import HEADER_SIZE, MAGIC, checked_header

PRODUCER_EXPIRATION_MS = 86_400_000


def open_log(
    directory: Path,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start: int = 0,
    high_watermark: int = 0,
    clock: Clock = SYSTEM_CLOCK,
    journal: Journal | None = None,
    on_failure: Callable[[str], None] = lambda reason: None,
) -> ModernLog:
    """The log in ``directory``, which is made if it is missing. ``clean``: the last stop was an orderly one."""
    is_new = not directory.exists()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = ModernLog(
        directory, topic, partition, config, clock=clock, journal=journal or Journal(), on_failure=on_failure
    )
    log.topic_id = _topic_id(log)
    log.is_unsynced = is_new
    loader = _Loader(log, clean, recovery_point)
    loader.finish_cleanups()
    loader.load_epochs()
    loader.open_segments()
    loader.settle(log_start)
    damaged = damaged_files(directory)
    if damaged and log.failed is None:
        log.failed = f"damage was set aside in {damaged[0]}, and nobody has accepted it (kafka2011 log accept)"
    log.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
    log.unstable.replicated(log.high_watermark)
    return log


class _Loader:
    def __init__(self, log: ModernLog, clean: bool, recovery_point: int) -> None:
        self._log, self._clean, self._recovery_point = log, clean, recovery_point
        self._directory = log.directory
        self._epochs_damaged = False

    def _files(self) -> list[tuple[Path, int, str, str]]:
        found = []
        for name in os.listdir(self._directory):
            parsed = parse_name(name)
            if parsed is not None:
                found.append((self._directory / name, *parsed))
        return sorted(found, key=lambda entry: (entry[1], entry[0].name))

    def finish_cleanups(self) -> None:
        """Take back what the cleaner had not finished, and finish what it had."""
        files = self._files()
        if all(state == "" for *_, state in files):
            return
        cleaned = [base for _, base, _, state in files if state == CLEANED]
        for path, base, _, state in files:
            undone = state == SWAP and cleaned and base >= min(cleaned)
            if state in (DELETED, CLEANED) or undone:
                path.unlink()
        files = self._files()
        swaps = {base: path for path, base, kind, state in files if (kind, state) == (LOG, SWAP)}
        if swaps:
            end = max(_end_of(self._directory, base, self._log.config) for base in swaps)
            for path, base, _, state in files:
                if state == "" and min(swaps) <= base < end:
                    path.unlink()
        for path, base, kind, state in self._files():
            if state == SWAP:
                os.rename(path, self._directory / file_name(base, kind))
        sync_directory(self._directory)

    def load_epochs(self) -> None:
        """Read the leader epochs; where the file is damaged, from the batches."""
        log = self._log
        try:
            log.epochs.load()
        except LogCorrupt as error:
            set_aside(self._directory / LEADER_EPOCHS, "damaged")
            self._epochs_damaged = True
            log.journal.emit(EpochsRebuilt(topic=log.topic, partition=log.partition, reason=str(error)))

    def open_segments(self) -> None:
        """Open every segment; check, batch by batch, what the disk may not have."""
        bases = [base for _, base, kind, state in self._files() if (kind, state) == (LOG, "")]
        for path, base, kind, state in self._files():
            if state == "" and kind not in (LOG, SNAPSHOT) and base not in bases:
                path.unlink()
        for number, base in enumerate(bases):
            segment = Segment(self._directory, base, self._log.config)
            self._log.segments.append(segment)
            end = bases[number + 1] if number + 1 < len(bases) else None
            why = self._untrusted(segment, end)
            if why is None:
                continue
            self._log.journal.emit(
                IndexRebuilt(topic=self._log.topic, partition=self._log.partition, base_offset=base, reason=why)
            )
            if not self._recover(segment, bases[number + 1 :]):
                break

    def _untrusted(self, segment: Segment, end: int | None) -> str | None:
        """Why a segment has to be read through; None if its indexes may be believed."""
        try:
            segment.load_indexes()
            missing = not segment.index.existed
            if segment.index.positions and segment.index.positions[-1] >= segment.size:
                raise LogCorrupt(f"{file_name(segment.base_offset, INDEX)}: it points beyond the log")
        except LogCorrupt as error:
            return str(error)
        if missing and segment.size:
            return "the offset index is missing"
        if not self._clean and (end is None or end > self._recovery_point):
            return "the last stop was not clean"
        return None

    def _recover(self, segment: Segment, later: list[int]) -> bool:
        """Read a segment batch by batch and index it anew; False if the log ends in it because of damage."""
        log = self._log
        segment.forget_indexes()
        restore_producers(log, segment.base_offset)
        position, disorder = 0, _first_disorder(segment)
        try:
            for stored, data in segment.checked_batches():
                if disorder is not None and stored.position >= disorder:
                    raise InvalidMessage(f"{segment.path.name}: the batch at {disorder} overlaps later offsets")
                segment.noted(stored)
                header = stored.header
                if header.leader_epoch > log.epochs.latest:
                    log.epochs.assign(header.leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    log.remember(header, data)
                log.producers.offset = header.next_offset
                position = stored.end
        except WireError as error:
            self._cut(segment, position, str(error), later)
            segment.finish()
            return False
        segment.finish()
        log.producers.offset = max(log.producers.offset, segment.base_offset)
        log.snapshots.remove(log.producers.offset)
        log.snapshots.take(log.producers)
        return True

    def _cut(self, segment: Segment, position: int, reason: str, later: list[int]) -> None:
        """End the log at ``position``: a torn tail goes, anything else is kept beside it."""
        log = self._log
        offset, lost = log.producers.offset, segment.size - position
        if not later and not _good_batch_after(segment, position, offset):
            segment.cut(position)
            log.journal.emit(
                TornTailCut(topic=log.topic, partition=log.partition, offset=offset, n_bytes=lost, reason=reason)
            )
            return
        aside = [self._copy_aside(segment, position)]
        segment.cut(position)
        for base in later:
            for path, of, kind, state in self._files():
                if of == base and state == "":
                    lost += path.stat().st_size if kind == LOG else 0
                    aside.append(set_aside(path, "damaged"))
        log.failed = f"damage at offset {offset} ({reason}); the rest was set aside in {aside[0].name}"
        log.journal.emit(
            DamageSetAside(
                topic=log.topic,
                partition=log.partition,
                offset=offset,
                n_bytes=lost,
                files=tuple(path.name for path in aside),
                reason=reason,
            )
        )

    def _copy_aside(self, segment: Segment, position: int) -> Path:
        path = segment.path.with_name(f"{segment.path.name}.damaged")
        number = 1
        while path.exists():
            number += 1
            path = segment.path.with_name(f"{segment.path.name}.damaged{number}")
        with open(path, "xb") as file:
            at = position
            while chunk := segment.read(at, 1 << 20):
                file.write(chunk)
                at += len(chunk)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)
        return path

    def settle(self, log_start: int) -> None:
        """Work out start and end, and what producers had written there."""
        log = self._log
        end = self._end()
        if log.segments and end < log_start:
            for segment in log.segments:
                segment.remove()
            log.segments.clear()
            log.snapshots.remove_from(0)
            log.epochs.clear()
        if not log.segments:
            log.log_start_offset = log.log_end_offset = log.producers.offset = log_start
            log.roll(log_start)
            log.recovery_point = log_start
            return
        log.log_end_offset = end
        if self._epochs_damaged:
            self._epochs_from_batches()
        log.log_start_offset = max(log_start, log.segments[0].base_offset)
        log.epochs.truncate_end(end)
        log.epochs.raise_start(log.log_start_offset)
        self._load_producers()
        log.recovery_point = end if self._clean else min(self._recovery_point, end)

    def _epochs_from_batches(self) -> None:
        for segment in self._log.segments:
            for stored in segment.batches():
                if stored.header.leader_epoch > self._log.epochs.latest:
                    self._log.epochs.assign(stored.header.leader_epoch, stored.header.base_offset)

    def _end(self) -> int:
        """The offset after the last batch."""
        if not self._log.segments:
            return 0
        for segment in reversed(self._log.segments):
            last = segment.last_batch()
            if last is not None:
                return last.header.next_offset
        return self._log.segments[-1].base_offset

    def _load_producers(self) -> None:
        log = self._log
        log.snapshots.keep_only({segment.base_offset for segment in log.segments})
        for offset in log.snapshots.offsets():
            if not log.log_start_offset < offset <= log.log_end_offset:
                log.snapshots.remove(offset)
        restore_producers(self._log, log.log_end_offset)
        log.producers.offset = log.log_end_offset
        log.producers.expire(log.clock.wall_ms() - PRODUCER_EXPIRATION_MS)


def _first_disorder(segment: Segment) -> int | None:
    """The position of the first batch that reaches beyond the offset of a later one: no CRC covers a batch's offset."""
    expected = segment.base_offset
    try:
        for stored in segment.batches():
            base = stored.header.base_offset
            if base < expected:
                return next(one.position for one in segment.batches() if one.header.next_offset > base)
            expected = stored.header.next_offset
    except WireError:
        pass  # rubbish further on is found there
    return None


def _topic_id(log: ModernLog) -> uuid.UUID | None:
    """What ``partition.metadata`` says; one that cannot be read, as a power cut leaves it, is written anew later."""
    try:
        return read_topic_id(log.directory)
    except LogCorrupt:
        return None


def _end_of(directory: Path, base: int, config: LogConfig) -> int:
    """The offset after the last batch of a cleaned segment."""
    segment = Segment(directory, base, config, suffix=SWAP)
    try:
        ends = [stored.header.next_offset for stored in segment.batches()]
        return ends[-1] if ends else base + 1
    finally:
        segment.close()


def _good_batch_after(segment: Segment, position: int, offset: int) -> bool:
    """Whether a whole batch of a later offset lies somewhere after ``position``: then this is no torn tail."""
    data = segment.read(position, segment.size - position)
    at = 0
    while (found := data.find(bytes([MAGIC]), at + 16)) >= 0:
        at = found - 16
        if len(data) - at < HEADER_SIZE:
            return False
        (base,) = struct.unpack_from(">q", data, at)
        if at > 0 and offset < base < offset + 2**31:
            try:
                checked_header(data, at)
            except WireError:
                pass
            else:
                return True
        at += 1
    return False
