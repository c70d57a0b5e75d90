"""Offsets of release 1.1, which kept them in a log of 2011 messages (``.modern/offsets``): read, to be taken over once.

A message held one record: time written, key, value (null = gone). Keys and values of offsets and of classic groups were
Kafka's already; members of KIP-848 groups are not taken over, they join again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from consumers.group_protocol.coordinator.records import read_key
from consumers.group_protocol.coordinator.settings import Record
from kafka2011.errors import Kafka2011Error, LogCorrupt
from kafka2011.log.dump import Damage, read_segment, segment_files
from since2011.topics.internal import OFFSETS_TOPIC
from since2011.wire.group_records import GroupRecordType
from since2011.wire.opaque import Reader

DIRECTORY = "offsets"
ADOPTED = "offsets.adopted"
_KEPT = (GroupRecordType.OFFSET, GroupRecordType.GROUP)


def read_old_offsets(directory: Path) -> dict[str, list[Record]]:
    """The last record of every key, by group; empty if there is no such log. Raises LogCorrupt."""
    latest: dict[bytes, bytes | None] = {}
    for partition in sorted(directory.glob(f"{OFFSETS_TOPIC}-*")):
        for key, value in _records(partition):
            latest[key] = value
    found: dict[str, list[Record]] = {}
    for key, value in latest.items():
        known = read_key(key) if key[:2] in (b"\0\1", b"\0\2") else None
        if known is not None and known.type in _KEPT and value is not None:
            found.setdefault(known.group, []).append(Record(key, value))
    return found


def _records(partition: Path) -> Iterator[tuple[bytes, bytes | None]]:
    try:
        files = segment_files(partition)
    except Kafka2011Error:
        return  # no segment yet
    for start, file in files:
        for entry in read_segment(start, file):
            if isinstance(entry, Damage):
                if entry.tail:
                    return
                raise LogCorrupt(f"{file}: damage at {entry.offset}; `kafka2011 log salvage` gets the records out")
            for payload in entry.messages():
                reader = Reader(payload)
                reader.i64()
                yield reader.blob(), reader.nullable_blob()
