"""What a group was given a second time after one of its readers was struck.

The demo's readers write a line ``topic broker-partition offset`` for each message they have dealt with, each into
``deliveries/<group>@<reader>.txt`` of the cluster's directory.

Paper: §3.3, at least once: "in the case when a consumer process crashes without a clean shutdown, the consumer process
that takes over those partitions owned by the failed consumer may get some duplicate messages".
"""

from __future__ import annotations

from pathlib import Path

from classroom.observatory.frames import Frame

_TAIL = 1 << 20
"""Bytes of a reader's file in which its last place in every partition is looked for."""


class Redeliveries:
    """Count from the moment of the fault on. Thread: one at a time."""

    def __init__(self, ledger: Path) -> None:
        self._ledger, self._group = ledger, ledger.stem.rpartition("@")[0]
        self._read = {path: path.stat().st_size for path in self._ledgers()}
        self._last: dict[tuple[str, str], int] | None = None
        self._again = 0

    @classmethod
    def after(cls, directory: Path, reader: str) -> Redeliveries | None:
        """Of a reader of this cluster, if it writes down what it was given."""
        found = sorted((directory / "deliveries").glob(f"*@{reader}.txt"))
        return cls(found[0]) if found else None

    def count(self, frame: Frame) -> tuple[int, bool]:
        """Messages given again so far; True once the group has stored places beyond all that the reader was given."""
        if self._last is None:
            self._last = _last_places(self._ledger)
        for path in self._ledgers():
            for topic, partition, offset in self._new(path):
                self._again += offset <= self._last.get((topic, partition), -1)
        offsets = frame["groups"].get(self._group, {}).get("offsets", {})
        reached = all(
            offsets[topic][partition] > last
            for (topic, partition), last in self._last.items()
            if partition in offsets.get(topic, {})
        )
        return self._again, reached

    def _ledgers(self) -> list[Path]:
        return sorted(self._ledger.parent.glob(f"{self._group}@*.txt"))

    def _new(self, path: Path) -> list[tuple[str, str, int]]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            data = file.read()
        whole = data.rfind(b"\n") + 1
        self._read[path] = self._read.get(path, 0) + whole
        return _places(data[:whole])


def _last_places(path: Path) -> dict[tuple[str, str], int]:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL, 0))
        data = file.read()
    last: dict[tuple[str, str], int] = {}
    for topic, partition, offset in _places(data):
        last[topic, partition] = max(offset, last.get((topic, partition), -1))
    return last


def _places(data: bytes) -> list[tuple[str, str, int]]:
    """The whole lines of a ledger; one that was cut short, at either end, is passed over."""
    words = [line.split() for line in data.decode("utf-8", "replace").splitlines(keepends=True) if line.endswith("\n")]
    return [(topic, partition, int(offset)) for topic, partition, offset in filter(_is_place, words)]


def _is_place(words: list[str]) -> bool:
    return len(words) == 3 and words[2].isdecimal() and "-" in words[1]
