"""Of every key the offset of its latest record, within a bound of memory: what the cleaner goes by.

A key longer than fifteen bytes stands as its sixteen-byte BLAKE2b digest, so a key of a megabyte takes no more room
than one of ten bytes. (Real Kafka keeps the MD5 of every key.)
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

DEFAULT_MAP_BYTES = 128 << 20
"""``log.cleaner.dedupe.buffer.size``."""
ENTRY_BYTES = 200
"""What one key takes at most: its place in the dict while that grows, the bytes, the number."""
_LONGEST_PLAIN = 15


class OffsetMap:
    """Keys of records from ``start`` on; ``end`` is the offset up to which all of them are in it. Thread: one."""

    def __init__(self, start: int, most_bytes: int = DEFAULT_MAP_BYTES) -> None:
        self.end = start
        self._most = max(1, most_bytes // ENTRY_BYTES)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def take(self, offsets: Mapping[bytes, int], start: int) -> bool:
        """Add the keys of one batch; False, and nothing is added, if they do not fit. The first batch always does."""
        found = {_short(key): offset for key, offset in offsets.items() if offset >= start}
        known = self._offsets
        if known and len(known) + sum(1 for key in found if key not in known) > self._most:
            return False
        known.update(found)
        return True

    def is_latest(self, key: bytes, offset: int) -> bool:
        """Whether no later record of the dirty part has this key."""
        return offset >= self._offsets.get(_short(key), -1)


def _short(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST_PLAIN else blake2b(key, digest_size=_LONGEST_PLAIN + 1).digest()
