"""Leader epochs: which leadership wrote which part of a log, so that histories that part can be told apart (KIP-101).

One entry (epoch, start offset) per leadership that exists in the log, both strictly rising. The paper's answer: one
broker per partition, so there is nothing to compare (§3.3 plans replication for later).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from kafka2011.errors import LogCorrupt
from since2011.log.checkpoint import LEADER_EPOCHS, decode, encode
from since2011.log.epoch_history import EpochEntry, EpochHistory
from since2011.log.files import sync_file, write_whole


class LeaderEpochs(EpochHistory):
    """The leaderships of one log, kept in its directory. Thread: one."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._path = directory / LEADER_EPOCHS
        self._unsynced = False

    def load(self) -> None:
        """Read the file. Raises LogCorrupt."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        entries = []
        for words in decode(data, str(self._path.name)):
            if len(words) != 2 or not all(word.isdecimal() for word in words):
                raise LogCorrupt(f"{self._path.name}: {' '.join(words)[:80]!r} is not an epoch and an offset")
            entries.append(EpochEntry(int(words[0]), int(words[1])))
        if any(a.epoch >= b.epoch or a.start_offset > b.start_offset for a, b in pairwise(entries)):
            raise LogCorrupt(f"{self._path.name}: its epochs or offsets do not rise")
        self.entries = entries

    def save(self) -> None:
        """Write the file whole. It is forced to disk with the log: until then the batches themselves say the same."""
        self._unsynced = True
        write_whole(self._path, encode(f"{e.epoch} {e.start_offset}" for e in self.entries), sync=False)

    def sync(self) -> None:
        """Force the file to disk."""
        if self._unsynced:
            self._unsynced = False
            sync_file(self._path)
