"""What the demo's readers were given, written down message by message, and how it is added up.

Each reader appends ``topic broker-partition offset`` per message with one write, *after* it has dealt with it, so a
killed reader's file lacks at most the message it had in hand, which is delivered again to its successor (§3.3).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Place = tuple[str, str, int]
"""Topic, broker-partition, offset: one message of the cluster."""


class Ledger:
    """The file of one reader. Thread: one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, topic: str, partition: str, offset: int) -> None:
        """Note one delivered message."""
        os.write(self._file, f"{topic} {partition} {offset}\n".encode())


@dataclass(frozen=True, slots=True)
class Tally:
    """What a whole group was given."""

    delivered: int
    distinct: frozenset[Place]

    @property
    def duplicates(self) -> int:
        return self.delivered - len(self.distinct)


def tally(paths: Iterable[Path]) -> Tally:
    """Add up the ledgers of one group."""
    seen: list[Place] = []
    for path in paths:
        for line in path.read_text().splitlines(keepends=True):
            words = line.split()
            if line.endswith("\n") and len(words) == 3:
                seen.append((words[0], words[1], int(words[2])))
    return Tally(len(seen), frozenset(seen))
