"""The log of a simulated member: real messages in memory, with segments where the leader has them."""

from __future__ import annotations

from kafka2011.wire import decode_set, validate_set
from since2011.log.epoch_history import EpochHistory

SEGMENT = 300


class SimLog:
    """One partition at one member. Everything here is on disk."""

    def __init__(self, *, half_entries: bool = False) -> None:
        self.first_offset = 0
        self.data = bytearray()
        self.segments = [0]
        self.watermark = self.flushed = 0
        self.history = EpochHistory()
        self._half_entries = half_entries

    @property
    def end_offset(self) -> int:
        """The offset after the last byte."""
        return self.first_offset + len(self.data)

    def segment_at(self, offset: int) -> tuple[int, int]:
        """As ``LedLog``."""
        start = max((one for one in self.segments if one <= offset), default=self.segments[0])
        return start, min((one for one in self.segments if one > start), default=self.end_offset)

    def append(self, data: bytes) -> int:
        """What a leader does; where it stands."""
        if self.end_offset - self.segments[-1] > SEGMENT:
            self.segments.append(self.end_offset)
        self.data += data
        return self.end_offset - len(data)

    def bytes_at(self, offset: int, size: int) -> bytes:
        """A range."""
        return bytes(self.data[offset - self.first_offset :][:size])

    def cut(self, offset: int) -> None:
        """As ``CopiedLog``."""
        del self.data[offset - self.first_offset :]
        self.segments = [one for one in self.segments if one < offset] or [self.first_offset]
        self._settle()

    def restart_at(self, offset: int) -> None:
        """As ``CopiedLog``."""
        self.first_offset, self.segments = offset, [offset]
        self.data.clear()
        self._settle()

    def copy_in(self, data: memoryview, segment_start: int) -> None:
        """As ``CopiedLog``."""
        entries = bytes(data)
        if not self._half_entries:
            entries = entries[: validate_set(entries, deep=False).size]
        if entries and segment_start == self.end_offset and segment_start != self.segments[-1]:
            self.segments.append(segment_start)
        self.data += entries

    def told(self, watermark: int, log_start: int) -> None:
        """As ``CopiedLog``."""
        self.watermark = min(watermark, self.end_offset)
        self.keep_from(log_start)

    def keep_from(self, offset: int) -> None:
        """Retention: whole segments before ``offset`` go."""
        kept = [one for one in self.segments if self.segment_at(one)[1] > offset] or [self.segments[-1]]
        del self.data[: kept[0] - self.first_offset]
        self.first_offset, self.segments = kept[0], kept
        self.history.raise_start(kept[0])

    def messages(self, upto: int) -> dict[int, bytes]:
        """Every message below ``upto`` by its offset. Raises a WireError where the bytes are none."""
        found = decode_set(bytes(self.data[: upto - self.first_offset]), self.first_offset)
        return {message.offset: bytes(message.payload) for message in found}

    def _settle(self) -> None:
        self.flushed, self.watermark = min(self.flushed, self.end_offset), min(self.watermark, self.end_offset)
