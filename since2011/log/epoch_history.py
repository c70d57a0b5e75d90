"""The history of a log as its leaders' epochs tell it: the rules, without a file (KIP-101).

One entry (epoch, start offset) per leadership that exists in the log, both strictly rising. ``LeaderEpochs`` keeps one
in a log's directory; the simulator keeps one in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

UNDEFINED = (-1, -1)
"""The answer to a question about an epoch nobody here has heard of."""


class EpochEntry(NamedTuple):
    """A leadership, and the first offset it wrote."""

    epoch: int
    start_offset: int


class EpochHistory:
    """The leaderships of one log. Thread: one."""

    def __init__(self) -> None:
        self.entries: list[EpochEntry] = []

    @property
    def latest(self) -> int:
        """The newest epoch; -1 if there is none."""
        return self.entries[-1].epoch if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` writes from ``start_offset`` on."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot begin at offset {start_offset}")
        if self.entries and epoch == self.latest and start_offset >= self.entries[-1].start_offset:
            return
        self.entries = [e for e in self.entries if e.epoch < epoch and e.start_offset < start_offset]
        self.entries.append(EpochEntry(epoch, start_offset))
        self.save()

    def truncate_end(self, offset: int) -> None:
        """Forget leaderships that began at ``offset`` or later."""
        kept = [entry for entry in self.entries if entry.start_offset < offset]
        if kept != self.entries:
            self.entries = kept
            self.save()

    def raise_start(self, offset: int) -> None:
        """Forget what lies wholly before ``offset``; the leadership that covers it begins there."""
        covering = bisect_right([entry.start_offset for entry in self.entries], offset) - 1
        if covering < 0 or (covering == 0 and self.entries[0].start_offset == offset):
            return
        self.entries = [EpochEntry(self.entries[covering].epoch, offset), *self.entries[covering + 1 :]]
        self.save()

    def clear(self) -> None:
        """Forget everything: the log begins anew."""
        self.entries = []
        self.save()

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Where the last leadership not newer than ``epoch`` ended: its epoch and the offset after its last record."""
        if epoch < 0 or not self.entries or epoch > self.latest:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        higher = bisect_right([entry.epoch for entry in self.entries], epoch)
        if higher == 0:
            return epoch, self.entries[0].start_offset
        return self.entries[higher - 1].epoch, self.entries[higher].start_offset

    def epoch_at(self, offset: int) -> int:
        """The leadership that wrote ``offset``; -1 if none is known."""
        place = bisect_right([entry.start_offset for entry in self.entries], offset) - 1
        return self.entries[place].epoch if place >= 0 else -1

    def save(self) -> None:
        """Called after every change."""
