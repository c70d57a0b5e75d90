"""A model of the modern log, and a hypothesis machine that compares the real one with it.

Model: every batch ever appended that still counts, with its offsets, and who wrote it in which transaction. Whatever is
done, the log shows exactly these records (after cleaning: the latest of every key), readers of committed records see no
other, and a power cut leaves a prefix with everything that was flushed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka2011.clock import ManualClock
from since2011.log.cleaner_choice import clean_range
from since2011.log.offset_map import ENTRY_BYTES
from since2011.log.retention import apply_retention
from since2011.log.settings import LogConfig
from since2011.log.swap import clean_log
from since2011.log.time_search import first_at_or_after
from since2011.log.truncation import truncate_to
from since2011.wire.record_batch import headers
from since2011.wire.records import Record, decode_marker, decode_records
from tests.unit.since2011.bench import Bench, no_codec
from tests.unit.since2011.vectors import T

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CONFIG = LogConfig(
    cleanup_policy=("compact",), segment_bytes=400, index_interval_bytes=80, segment_ms=10**12, delete_retention_ms=50
)
quick = settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, database=None)
PRODUCERS = (1, 2)
KEYS = st.sampled_from([b"a", b"b", b"c"])


@dataclass(frozen=True)
class Written:
    """A record of the model; ``producer`` is set for one of a transaction."""

    record: Record
    producer: int | None = None


class ModernLogMachine(RuleBasedStateMachine):
    """Append, transact, roll, flush, clean, cut, stop cleanly, lose power."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="modern-log-", dir=IN_MEMORY))
        self.clock = ManualClock(T)
        self.bench = Bench(self.root / "clicks-0", CONFIG, self.clock)
        self.written: list[Written] = []
        self.markers: list[tuple[int, int, bool]] = []
        """Offset, producer, committed."""
        self.start_offset = 0
        self.flushed = 0
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.last: dict[int, tuple[int, bytes, bytes | None]] = {}
        self.number = 0
        self.cleaned = False

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.bench.log.close(clean=False)
            shutil.rmtree(self.root)

    @property
    def log(self):  # type: ignore[no-untyped-def]
        return self.bench.log

    def value(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    # -- deeds --------------------------------------------------------------------------------------------------

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3), null=st.booleans())
    def append(self, keys: list[bytes], null: bool) -> None:
        """A batch without a producer."""
        self.clock.advance(0.001)
        pairs = [(key, None if null and not n else self.value()) for n, key in enumerate(keys)]
        end = self.log.log_end_offset
        appended = self.bench.send(*pairs)
        assert (appended.first_offset, appended.last_offset) == (end, end + len(pairs) - 1)
        now = self.clock.wall_ms()
        self.written += [Written(Record(end + n, now, key, value)) for n, (key, value) in enumerate(pairs)]

    @rule(producer=st.sampled_from(PRODUCERS), key=KEYS)
    def append_in_transaction(self, producer: int, key: bytes) -> None:
        """One record of a transaction."""
        self.clock.advance(0.001)
        value, end, sequence = self.value(), self.log.log_end_offset, self.sequences[producer]
        appended = self.bench.send_in_transaction(producer, sequence, key, value)
        assert (appended.first_offset, appended.duplicate) == (end, False)
        self.sequences[producer] = sequence + 1
        self.written.append(Written(Record(end, self.clock.wall_ms(), key, value), producer))
        self.last[producer] = (end, key, value)

    @rule(producer=st.sampled_from(PRODUCERS))
    def retry(self, producer: int) -> None:
        """The last batch of a producer comes again."""
        if producer in self.last:
            offset, key, value = self.last[producer]
            again = self.bench.send_in_transaction(producer, self.sequences[producer] - 1, key, value)
            assert (again.first_offset, again.duplicate) == (offset, True)

    @rule(producer=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        """A transaction ends."""
        offset = self.bench.end(producer, commit=commit).first_offset
        self.markers.append((offset, producer, commit))

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.flushed = self.log.flush()

    @rule()
    def restart(self) -> None:
        self.bench.restart()
        self.flushed = self.log.log_end_offset
        self._forget_from(self.flushed)  # of producers whose records were all deleted nothing is known any more

    @rule(lost=st.integers(0, 200))
    def power_cut(self, lost: int) -> None:
        """Bytes that were not flushed may be gone, from the end of the log on."""
        active = self.log.active
        if self.flushed <= active.base_offset:
            keep = 0
        else:
            found = active.find(self.flushed)
            keep = active.size if found is None else found.position
        active.cut(max(keep, active.size - lost))
        self.bench.crash(recovery_point=self.flushed)
        assert self.log.log_end_offset >= self.flushed
        self._forget_from(self.log.log_end_offset)

    @rule(back=st.integers(0, 5))
    def truncate(self, back: int) -> None:
        """A leader's history is shorter."""
        target = max(self.log.log_end_offset - back, self.log.segments[0].base_offset)
        truncate_to(self.log, target)
        assert self.log.log_end_offset <= target
        self._forget_from(self.log.log_end_offset)
        self.flushed = min(self.flushed, self.log.log_end_offset)
        self.start_offset = min(self.start_offset, self.log.log_start_offset)
        self.log.raise_high_watermark(self.log.log_end_offset)

    def _forget_from(self, end: int) -> None:
        self.written = [w for w in self.written if w.record.offset < end]
        self.markers = [m for m in self.markers if m[0] < end]
        for producer in PRODUCERS:
            mine = [w.record for w in self.written if w.producer == producer]
            known = self.log.producers.producers.get(producer)
            self.sequences[producer] = 0 if known is None else known.last_sequence + 1
            if known is None or not mine or known.last_data_offset != mine[-1].offset:
                self.last.pop(producer, None)
            else:
                self.last[producer] = (mine[-1].offset, mine[-1].key or b"", mine[-1].value)

    @rule(forward=st.integers(0, 4))
    def delete_records(self, forward: int) -> None:
        target = min(self.log.log_start_offset + forward, self.log.high_watermark)
        self.log.raise_log_start(target)
        apply_retention(self.log)
        self.start_offset = self.log.log_start_offset
        assert self.start_offset == max(target, self.log.segments[0].base_offset)

    @rule(most=st.integers(1, 4), wait=st.booleans())
    @precondition(lambda self: hasattr(self, "bench") and len(self.log.segments) > 1)
    def clean(self, most: int, wait: bool) -> None:
        """One round of the cleaner, perhaps with a small map."""
        self.clock.advance(0.1 if wait else 0.0)
        found = clean_range(self.log, None, self.clock.wall_ms())
        first, last = found.first_dirty, found.first_uncleanable
        clean_log(self.log, first, last, no_codec, no_codec, most_bytes=most * ENTRY_BYTES)
        self.cleaned = True

    # -- what must be so ----------------------------------------------------------------------------------------

    @invariant()
    def offsets_are_in_order(self) -> None:
        if hasattr(self, "bench"):
            log = self.log
            assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset

    @invariant()
    def what_is_read_is_what_was_written(self) -> None:
        if not hasattr(self, "bench"):
            return
        expected = [w.record for w in self.written if w.record.offset >= self.start_offset]
        found = self.bench.records()
        if not self.cleaned:
            assert found == expected
            return
        assert {r.offset for r in found} <= {r.offset for r in expected}
        by_offset = {r.offset: r for r in expected}
        assert all(by_offset[r.offset] == r for r in found)
        # Of every key the latest committed record stays; a null one may go once readers had time to see it.
        for record in self._committed(expected):
            if record.value is not None:
                assert record in found, record

    def _committed(self, expected: list[Record]) -> list[Record]:
        """The latest record of each key among those no abort took back and no open transaction holds."""
        latest: dict[bytes | None, Record] = {}
        for written in self.written:
            if written.record not in expected:
                continue
            if written.producer is not None and self._fate(written) is not True:
                continue
            latest[written.record.key] = written.record
        return list(latest.values())

    def _fate(self, written: Written) -> bool | None:
        for offset, producer, committed in self.markers:
            if producer == written.producer and offset > written.record.offset:
                return committed
        return None

    @invariant()
    def readers_of_committed_records_see_no_other(self) -> None:
        if not hasattr(self, "bench"):
            return
        stable = self.log.last_stable_offset
        seen = self._read_committed()
        by_offset = {w.record.offset: w for w in self.written}
        for offset in seen:
            written = by_offset[offset]
            assert written.producer is None or self._fate(written) is True, written
        if not self.cleaned:
            expected = [
                w.record.offset
                for w in self.written
                if self.start_offset <= w.record.offset < stable and (w.producer is None or self._fate(w))
            ]
            assert seen == expected
        opened = [w.record.offset for w in self.written if w.producer is not None and self._fate(w) is None]
        if opened and min(opened) >= self.start_offset and not self.cleaned:
            # A transaction whose first records were deleted may be forgotten at the next start, as real Kafka does.
            assert stable == min(opened)

    def _read_committed(self) -> list[int]:
        """What a client with isolation level read_committed makes of our answers."""
        log, seen = self.log, []
        offset, stable = log.log_start_offset, log.last_stable_offset
        while (part := log.locate(offset, 150, stable)) is not None:
            aborted = sorted(log.aborted(part), key=lambda entry: entry.first_offset)
            dropped: set[int] = set()
            data = part.segment.read(part.position, part.size)
            for position, header in headers(data):
                while aborted and aborted[0].first_offset <= header.last_offset:
                    dropped.add(aborted.pop(0).producer_id)
                batch = data[position : position + header.size]
                if header.control:
                    marker = decode_marker(batch, header)
                    if marker is not None and not marker.committed:
                        dropped.discard(header.producer_id)
                elif not (header.transactional and header.producer_id in dropped):
                    seen += [r.offset for r in decode_records(batch, header, no_codec) if r.offset >= offset]
                last = header.next_offset
            offset = last
        return seen

    @invariant()
    def times_lead_to_records(self) -> None:
        if not hasattr(self, "bench") or self.cleaned:
            return
        live = [w.record for w in self.written if w.record.offset >= self.start_offset]
        for record in live[-2:]:
            found = first_at_or_after(self.log, record.timestamp, no_codec)
            assert found is not None
            assert found.offset <= record.offset
            assert found.timestamp >= record.timestamp
