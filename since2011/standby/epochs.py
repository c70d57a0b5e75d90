"""The side file: which epoch wrote which part of each log of a member. Forced to disk before an epoch's first append.

The paper's messages carry no epoch, so this file is the only place that tells histories apart. One small text file for
all partitions, replaced whole:

    standby epochs 1
    clicks-0 4294967401 0
    clicks-0 4294967519 108213
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka2011.errors import LogCorrupt
from kafka2011.types import TopicPartition
from since2011.log.epoch_history import EpochEntry, EpochHistory
from since2011.log.files import write_whole

FILE = "epochs"
_TITLE = "standby epochs 1"


class _History(EpochHistory):
    def __init__(self, file: Epochs) -> None:
        super().__init__()
        self._file = file

    def save(self) -> None:
        self._file.save()


class Epochs:
    """The histories of all logs of one member. Thread: one."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._histories: dict[TopicPartition, _History] = {}
        self._held = False

    def load(self, ends: Mapping[TopicPartition, int]) -> None:
        """Read the file; what begins beyond the end of its log was written before an append that never came."""
        if not self._path.exists():
            return
        title, *lines = self._path.read_text(encoding="utf-8").splitlines() or [""]
        try:
            if title != _TITLE:
                raise ValueError(f"the title {title[:80]!r} is not known")
            for line in lines:
                name, epoch, start = line.split(" ")
                topic, _, number = name.rpartition("-")
                where = TopicPartition(topic, int(number))
                if int(start) <= ends.get(where, -1):
                    self.of(where).entries.append(EpochEntry(int(epoch), int(start)))
        except ValueError as error:
            why = f"{self._path} cannot be read ({error}); remove it, and this member copies anew"
            raise LogCorrupt(why) from error

    def of(self, where: TopicPartition) -> EpochHistory:
        """The history of one log; empty for one that nobody has heard of."""
        return self._histories.setdefault(where, _History(self))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write once for many changes."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.save()

    def save(self) -> None:
        """Replace the file, and force it to disk."""
        if self._held:
            return
        lines = [_TITLE]
        for where, history in sorted(self._histories.items()):
            lines += (f"{where} {entry.epoch} {entry.start_offset}" for entry in history.entries)
        write_whole(self._path, "".join(f"{line}\n" for line in lines).encode())
