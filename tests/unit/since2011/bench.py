"""A modern log in a directory, and ways to write to it."""

from __future__ import annotations

from pathlib import Path

from kafka2011.clock import Clock, ManualClock
from kafka2011.events import Journal
from since2011.log.log import ModernLog
from since2011.log.recovery import open_log
from since2011.log.settings import LogConfig
from since2011.log.validation import Appended, Prepared, Validator
from since2011.wire.record_batch import TRANSACTIONAL, headers
from since2011.wire.records import Marker, Record, decode_records, encode_marker, encode_records
from tests.unit.since2011.vectors import T

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100, segment_ms=10**12)


def no_codec(codec: int, data: bytes) -> bytes:
    raise AssertionError("nothing here is compressed")


PLAIN = Validator(no_codec, no_codec)


class Bench:
    """One partition that can be stopped, killed and opened again."""

    def __init__(self, directory: Path, config: LogConfig = SMALL, clock: Clock | None = None) -> None:
        self.directory, self.config = directory, config
        self.clock = clock or ManualClock(T)
        self.journal = Journal()
        self.log = self._open(clean=True)

    def _open(self, *, clean: bool, recovery_point: int = 0, log_start: int = 0) -> ModernLog:
        return open_log(
            self.directory,
            "clicks",
            0,
            self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start=log_start,
            clock=self.clock,
            journal=self.journal,
        )

    def send(self, *pairs: tuple[bytes | None, bytes | None], at: int | None = None, **fields: int) -> Appended:
        """Append one batch of keys and values as a client's."""
        when = self.clock.wall_ms() if at is None else at
        records = [Record(number, when, key, value) for number, (key, value) in enumerate(pairs)]
        prepared = PLAIN.prepare(encode_records(records, **fields), self.log.config, self.clock.wall_ms())
        appended = self.log.append(prepared, 0)
        self.log.raise_high_watermark(self.log.log_end_offset)
        return appended

    def send_in_transaction(self, producer_id: int, sequence: int, key: bytes, value: bytes | None) -> Appended:
        """One transactional record."""
        return self.send(
            (key, value), attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )

    def end(self, producer_id: int, *, commit: bool) -> Appended:
        """The marker of a transaction."""
        marker = encode_marker(
            Marker(commit, 0), producer_id=producer_id, producer_epoch=0, timestamp=self.clock.wall_ms()
        )
        appended = self.log.append(Prepared(bytearray(marker)), 0)
        self.log.raise_high_watermark(self.log.log_end_offset)
        return appended

    def restart(self) -> None:
        """Stop in peace and open again."""
        self.log.close()
        self.log = self._open(clean=True, recovery_point=self.log.recovery_point, log_start=self.log.log_start_offset)
        self.log.raise_high_watermark(self.log.log_end_offset)

    def crash(self, *, recovery_point: int = 0) -> None:
        """Open again what a killed process left."""
        start = self.log.log_start_offset
        self.log.close(clean=False)
        self.log = self._open(clean=False, recovery_point=recovery_point, log_start=start)
        self.log.raise_high_watermark(self.log.log_end_offset)

    def records(self, start: int | None = None) -> list[Record]:
        """Every record from ``start`` on, as a fetcher that asks again and again sees them; no markers."""
        offset = self.log.log_start_offset if start is None else start
        found: list[Record] = []
        while (part := self.log.locate(offset, 200, self.log.high_watermark)) is not None:
            data = part.segment.read(part.position, part.size)
            for position, header in headers(data):
                batch = data[position : position + header.size]
                if not header.control:
                    found += [r for r in decode_records(batch, header, no_codec) if r.offset >= offset]
                last = header.next_offset
            offset = last
        return found

    def pairs(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of every record."""
        return [(record.offset, record.key, record.value) for record in self.records()]
