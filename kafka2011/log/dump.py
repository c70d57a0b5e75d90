"""Read segment files for people: every entry with its offset, and every stretch that is not one.

Paper: §3.1, §3.3. Used by `kafka2011 log dump`, `verify` and `salvage`; works on a file or a partition's directory,
also while a broker writes to it, and on quarantined files.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka2011.errors import InvalidMessage, Kafka2011Error, WireError
from kafka2011.log.scan import entry_at, intact_after
from kafka2011.log.segment import SUFFIX
from kafka2011.wire import decode_set
from kafka2011.wire.message import Codec, codec_of

_SEGMENT_OR_QUARANTINED = re.compile(r"([0-9]{1,20})\.kafka(\.[a-z]+[0-9]*)?\Z")


@dataclass(frozen=True, slots=True)
class DumpedEntry:
    """One intact entry of a segment; ``data`` is the entry as it stands there."""

    path: Path
    offset: int
    size: int
    magic: int
    codec: Codec
    crc: int
    payload: bytes
    data: bytes

    def messages(self) -> list[bytes]:
        """The payloads inside: one, or those of a wrapper. Raises InvalidMessage if it cannot be opened."""
        return [m.payload for m in decode_set(self.data)]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no entry: ``tail`` tells an unfinished write at the end from damage in the middle."""

    path: Path
    offset: int
    size: int
    tail: bool


def segment_files(path: Path) -> list[tuple[int, Path]]:
    """The segment files ``path`` stands for, with their first offsets, in order.

    A directory gives its segments, and a quarantined file where the segment itself is missing.
    """
    if path.is_dir():
        found: dict[int, Path] = {}
        for file in sorted(path.iterdir(), key=lambda file: (len(file.suffixes), file.name)):
            match = _SEGMENT_OR_QUARANTINED.match(file.name)
            if match and match[2] in (None, ".corrupt"):
                found.setdefault(int(match[1]), file)
        if not found:
            raise Kafka2011Error(f"{path} holds no segment (*{SUFFIX}); name a partition's directory, such as clicks-0")
        return sorted(found.items())
    if not path.is_file():
        raise Kafka2011Error(f"{path} is neither a segment file nor a partition's directory")
    match = _SEGMENT_OR_QUARANTINED.match(path.name)
    if match:
        return [(int(match[1]), path)]
    first = next(read_segment(0, path), None)
    if isinstance(first, Damage) and first.tail:
        raise Kafka2011Error(f"{path} is no segment: not one message is in its {first.size} bytes")
    # A file under another name, such as salvaged messages, begins at 0.
    return [(0, path)]


def read_segment(start: int, path: Path, offset: int = 0) -> Iterator[DumpedEntry | Damage]:
    """Every entry of a segment from ``offset`` on, and the damage between them."""
    with _mapped(path) as data:
        pos, end = max(0, offset - start), len(data)
        while pos < end:
            entry = entry_at(data, pos, end)
            if entry is None:
                try:
                    after = next(intact_after(data, pos, end), None)
                except InvalidMessage:
                    after = None
                yield Damage(path, start + pos, (after or end) - pos, tail=after is None)
                pos = after or end
                continue
            raw = bytes(data[pos : pos + entry.size])
            crc = int.from_bytes(raw[6:10] if entry.magic else raw[5:9], "big")
            codec = _codec(entry.attributes)
            if codec is None:
                yield Damage(path, start + pos, entry.size, tail=False)
            else:
                yield DumpedEntry(path, start + pos, entry.size, entry.magic, codec, crc, entry.payload, raw)
            pos += entry.size


def _codec(attributes: int) -> Codec | None:
    try:
        return codec_of(attributes)
    except WireError:
        return None


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """The file's bytes without reading them all."""
    with open(path, "rb") as file:
        if path.stat().st_size == 0:
            # An empty file cannot be mapped.
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            yield data
