"""The notes a store keeps in its directory for the next start: the checkpoint and the clean-shutdown marker.

A disk without room takes no notes. That ends nothing: what is stored is served, and the notes are written when there is
room again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kafka2011.errors import LogError
from kafka2011.events import Journal
from kafka2011.log.checkpoint import FILE, Checkpoint, Missing, RecoveryPoint, read_checkpoint, write_checkpoint
from kafka2011.log.directory import NO_ROOM, DirectoryLock, Marker, leave_marker, room_left, take_marker
from kafka2011.log.events import CheckpointDamaged, HousekeepingFailed, NoRoom, RoomAgain
from kafka2011.types import TopicPartition


@dataclass(frozen=True, slots=True)
class LastStop:
    """How the directory was left."""

    clean: bool
    """Nothing needs a scan."""
    exact: bool
    """We left it, cleanly: the checkpoint tells the very last offset."""
    foreign: bool
    """Another broker (a real 0.7) had it since the checkpoint was written."""


class Notes:
    """The notes of one data directory. Thread: guarded by its store.

    room -> no room: a note could not be written for want of it; the next one that can -> room.
    """

    def __init__(self, directory: Path, journal: Journal) -> None:
        self._directory, self._journal = directory, journal
        self._found: Checkpoint | None = None
        self._written: Checkpoint | None = None
        """The last one that was written; None if it could not be."""
        self.no_room: str | None = None
        """Why this directory takes nothing at the moment, and what to do, if so."""

    def read(self) -> LastStop:
        """Read what the last process left, and take its marker."""
        self._found = read_checkpoint(self._directory)
        if self._found is not None and self._found.damaged:
            self._journal.emit(CheckpointDamaged(path=str(self._directory / FILE)))
        marker = take_marker(self._directory)
        closed = self._found is not None and self._found.closed
        return LastStop(
            clean=marker is not Marker.NONE,
            exact=marker is Marker.OURS and closed,
            foreign=marker is Marker.FOREIGN or (closed and marker is Marker.NONE),
        )

    def point(self, where: TopicPartition) -> RecoveryPoint | None:
        """Where to trust a partition up to. One that came after the checkpoint: nowhere. No checkpoint: 0.7's rule."""
        return None if self._found is None else self._found.points.get(str(where), RecoveryPoint(0, 0))

    def missing(self, where: TopicPartition) -> tuple[Missing, ...]:
        """What was missing of a partition at an earlier start, and nobody has accepted."""
        return () if self._found is None else self._found.missing.get(str(where), ())

    def partitions(self) -> set[TopicPartition]:
        """The partitions that had given out offsets."""
        points = {} if self._found is None else self._found.points
        split = (name.rpartition("-") for name, point in points.items() if point.flushed_offset)
        return {TopicPartition(topic, int(number)) for topic, _, number in split}

    def is_written(self, checkpoint: Checkpoint) -> bool:
        """Whether the file says exactly this."""
        return checkpoint == self._written

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint. A failure costs only a longer scan at the next start."""
        self._written = None
        try:
            write_checkpoint(self._directory, checkpoint)
        except OSError as error:
            self.failed("checkpoint", error)
            return
        self._written = checkpoint
        if self.no_room is not None:
            self.no_room = None
            self._journal.emit(RoomAgain())

    def leave_marker(self) -> None:
        """Say that the stop was clean."""
        try:
            leave_marker(self._directory)
        except OSError as error:
            self.failed("marker", error)

    def failed(self, step: str, error: OSError | LogError) -> None:
        """Tell that a note could not be written; want of room is told once."""
        if not isinstance(error, OSError) or error.errno not in NO_ROOM:
            self._journal.emit(HousekeepingFailed(step=step, path=str(self._directory), reason=str(error)))
        elif self.no_room is None:
            self.no_room = (
                f"no room on the disk of {self._directory} ({error.strerror}; {room_left(self._directory)}): what is "
                "stored is served, nothing is taken. Delete other files there, or let the broker keep less "
                "(log.retention.hours, log.retention.size); it goes on by itself, without a restart"
            )
            self._journal.emit(NoRoom(reason=self.no_room))


def accept_missing(directory: Path) -> list[str]:
    """Note, in a directory that no broker has, that what is missing is known; return what it was.

    A partition whose directory is gone is forgotten: its topic, if it comes back, begins at offset 0.
    """
    lock = DirectoryLock(directory)
    try:
        found = read_checkpoint(directory)
        if found is None or found.damaged:
            return []
        gone = [name for name in found.points if not (directory / name).is_dir()]
        points = {name: point for name, point in found.points.items() if name not in gone}
        write_checkpoint(directory, replace(found, points=points, missing={}))
        told = [str(one) for missing in found.missing.values() for one in missing]
        return [*told, *(f"{name} is gone, and is forgotten" for name in gone)]
    finally:
        lock.release()
