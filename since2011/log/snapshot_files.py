"""The snapshots of producers in a partition's directory: taken at every roll, one kept for each segment."""

from __future__ import annotations

import os
from pathlib import Path

from kafka2011.errors import LogCorrupt
from since2011.log.files import SNAPSHOT, file_name, parse_name, sync_file
from since2011.log.producer_state import ProducerEntry, ProducerState
from since2011.log.snapshot import decode_snapshot, encode_snapshot


class SnapshotFiles:
    """Thread: one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unsynced: list[Path] = []

    def offsets(self) -> list[int]:
        """The offsets there are snapshots of, in order."""
        found = (parse_name(name) for name in os.listdir(self._directory))
        return sorted(name[0] for name in found if name is not None and name[1:] == (SNAPSHOT, ""))

    def take(self, state: ProducerState) -> None:
        """Write the state down, unless there is a snapshot of this offset or a later one."""
        known = self.offsets()
        if known and known[-1] >= state.offset:
            return
        path = self._path(state.offset)
        path.write_bytes(encode_snapshot(state.snapshot()))
        path.chmod(0o600)
        self._unsynced.append(path)

    def read(self, offset: int) -> list[tuple[int, ProducerEntry]]:
        """The producers as of ``offset``. Raises LogCorrupt."""
        path = self._path(offset)
        try:
            return decode_snapshot(path.read_bytes(), path.name)
        except OSError as error:
            raise LogCorrupt(f"{path.name}: {error}") from error

    def remove(self, offset: int) -> None:
        """Delete one, if it is there."""
        self._path(offset).unlink(missing_ok=True)

    def remove_from(self, offset: int) -> None:
        """Delete those of ``offset`` and later: the log was cut before them."""
        for known in self.offsets():
            if known >= offset:
                self.remove(known)

    def keep_only(self, bases: set[int]) -> None:
        """Delete those that belong to no segment, but for the newest."""
        known = self.offsets()
        for offset in known[:-1]:
            if offset not in bases:
                self.remove(offset)

    def sync(self) -> None:
        """Force new ones to disk."""
        paths, self._unsynced = self._unsynced, []
        for path in paths:
            sync_file(path)

    def _path(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT)
