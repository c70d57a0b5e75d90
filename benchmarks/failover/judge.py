"""What must be true of a replicated topic, whatever was done to its brokers.

| promise | judged by |
|---|---|
| what was acknowledged is there | every acknowledged value stands at its offset in the leader's log |
| what was read stays | every value a reader got stands there, too |
| replicas agree | the batches of any two logs are equal, below the smaller end |
| one leader writes in an epoch | epochs never fall along a log, and where logs are equal, epochs are |
| a watermark never goes back | the ends a reader was told, in ListOffsets and in fetch answers, never fell |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from since2011.wire.compression import decompress
from since2011.wire.record_batch import BatchHeader, headers
from since2011.wire.records import decode_records

Log = dict[int, tuple[BatchHeader, bytes]]
"""Base offset to batch."""


@dataclass(frozen=True)
class Stands:
    """A value that must stand at an offset: it was acknowledged, or read."""

    partition: int
    offset: int
    value: bytes


@dataclass
class Verdict:
    """What was found to be untrue."""

    lost: list[Stands] = field(default_factory=list)
    changed: list[Stands] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    went_back: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing was."""
        return not (self.lost or self.changed or self.different or self.went_back)


def read_log(directory: Path) -> Log:
    """Every batch in a partition's directory."""
    found: Log = {}
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        for position, header in headers(data):
            found[header.base_offset] = header, data[position : position + header.size]
    return found


def values_of(log: Log) -> dict[int, bytes]:
    """Offset to value."""
    return {
        record.offset: record.value or b""
        for header, batch in log.values()
        for record in decode_records(batch, header, lambda codec, data: decompress(codec, data, 1 << 26))
    }


def missing(stands: Iterable[Stands], stored: Mapping[int, Mapping[int, bytes]]) -> list[Stands]:
    """Those that do not stand where they should."""
    return [one for one in stands if stored.get(one.partition, {}).get(one.offset) != one.value]


def differences(name: str, logs: Mapping[int, Log]) -> list[str]:
    """Where two replicas of a partition differ, below the smaller end, and where epochs fall."""
    found = []
    for broker, log in logs.items():
        epochs = [header.leader_epoch for header, _ in log.values()]
        if epochs != sorted(epochs):
            found.append(f"{name} at {broker}: epochs fall")
    brokers = sorted(logs)
    for at, one in enumerate(brokers):
        for other in brokers[at + 1 :]:
            found += _between(name, one, logs[one], other, logs[other])
    return found


def _between(name: str, one: int, mine: Log, other: int, theirs: Log) -> list[str]:
    end = min(_end(mine), _end(theirs))
    offsets = sorted(offset for offset in mine.keys() | theirs.keys() if offset < end)
    for offset in offsets:
        if mine.get(offset, (None, b""))[1] != theirs.get(offset, (None, b""))[1]:
            return [f"{name}: {one} and {other} differ from offset {offset} on (ends {_end(mine)}, {_end(theirs)})"]
    return []


def _end(log: Log) -> int:
    return max((header.next_offset for header, _ in log.values()), default=0)
