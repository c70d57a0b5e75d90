"""A model of the log, and a hypothesis machine that compares the real one with it (docs/reliability.md).

Model: the messages ever appended, each with its offset, and how many are surely flushed. Whatever is done, the log
shows exactly the flushed prefix; after a power cut it holds a prefix that contains everything flushed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka2011.clock import ManualClock
from kafka2011.errors import LogCorrupt, LogFull, OffsetOutOfRange, WireError
from kafka2011.failpoints import activate
from kafka2011.log import Log, LogSettings, LogStore
from kafka2011.wire import decode_set, encode_set, validate_set

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Power cuts are played on the files, so a real disk's syncs would only cost time."""
SETTINGS = LogSettings(file_size=60, flush_messages=10_000, retention_ms=1000)
quick = settings(max_examples=40, stateful_step_count=25, deadline=None, derandomize=True, database=None)


class LogMachine(RuleBasedStateMachine):
    """Append, flush, read, retain, stop cleanly, lose power."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="log-machine-", dir=IN_MEMORY))
        self.clock = ManualClock()
        self.messages: list[tuple[int, bytes]] = []
        self.end = self.flushed = self.first = 0
        self.number = 0
        self.open()

    def open(self) -> None:
        self.store = LogStore(self.root, SETTINGS, clock=self.clock)
        self.store.open()
        self.log: Log = self.store.get_or_create("t", 0)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.store.close()
            shutil.rmtree(self.root)

    def batch(self, sizes: list[int]) -> tuple[bytes, list[bytes]]:
        payloads = []
        for size in sizes:
            self.number += 1
            payloads.append(b"%d:" % self.number + b"x" * size)
        return encode_set(payloads), payloads

    def appended(self, data: bytes, payloads: list[bytes]) -> None:
        for message, payload in zip(decode_set(data, self.end), payloads, strict=True):
            self.messages.append((message.offset, payload))
        self.end += len(data)

    @rule(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=3), tail=st.binary(max_size=3))
    def append(self, sizes: list[int], tail: bytes) -> None:
        """A batch, perhaps with garbage after it, as a broker appends it: cut at its valid bytes."""
        data, payloads = self.batch(sizes)
        summary = validate_set(data + tail)
        start, end = self.log.append((data + tail)[: summary.size], summary.n_messages)
        assert (start, end) == (self.end, self.end + len(data))
        self.appended(data, payloads)

    @rule(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=3), taken=st.integers(1, 9))
    def append_in_short_writes(self, sizes: list[int], taken: int) -> None:
        """The kernel takes a few bytes at a time."""
        data, payloads = self.batch(sizes)
        pwrite = os.pwrite
        with patch.object(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data[:taken]), at)):
            self.log.append(data, len(payloads))
        self.appended(data, payloads)

    @rule(step=st.sampled_from(["log.append.before_write", "log.append.after_write", "log.roll.before_create"]))
    def append_to_a_full_disk(self, step: str) -> None:
        """Refused whole, or not reached (no roll was due)."""
        data, payloads = self.batch([5])
        with activate(step, "raise:ENOSPC"):
            try:
                self.log.append(data, 1)
            except LogFull:
                return
        assert step == "log.roll.before_create"
        self.appended(data, payloads)

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end
        self.flushed = self.end

    @rule(seconds=st.sampled_from([0.5, 2.0, 2.0]), flush_first=st.booleans())
    def retain(self, seconds: float, flush_first: bool) -> None:
        """Old segments go; the next offset does not move, and nothing unflushed goes."""
        if flush_first:
            self.flush()
        self.clock.advance(seconds)
        self.store.apply_retention()
        assert self.first <= self.log.first_offset <= self.flushed
        assert self.log.end_offset == self.end
        self.first = self.log.first_offset
        self.messages = [m for m in self.messages if m[0] >= self.first]

    @rule()
    def stop_and_start(self) -> None:
        self.store.close()
        self.flushed = self.end
        self.open()

    @rule(
        cut=st.integers(0, 10_000),
        how=st.sampled_from(["nothing", "cut", "zeros", "garbage"]),
        checkpoint=st.booleans(),
    )
    def lose_power(self, cut: int, how: str, checkpoint: bool) -> None:
        """Unflushed bytes are lost from some point on, or come back as zeros or garbage."""
        if checkpoint:
            self.store.checkpoint()
        at = self.flushed + cut % (self.end - self.flushed + 1)
        self.crash()
        if how != "nothing":
            self.spoil(at, how)
        self.open()
        assert self.flushed <= self.log.end_offset <= self.end
        assert self.log.end_offset == self.end or how != "nothing"
        boundaries = [offset for offset, _ in self.messages] + [self.end, self.first]
        assert self.log.end_offset in boundaries
        self.end = self.flushed = self.log.end_offset
        self.messages = [m for m in self.messages if m[0] < self.end]

    @rule(where=st.integers(0, 10_000))
    def flip_a_flushed_bit(self, where: int) -> None:
        """Damage with intact messages after it is never skipped silently: offline, and healed when the bit is."""
        last = self.log.segments()[-1]
        inside = [offset for offset, _ in self.messages if offset >= last.start]
        if len(inside) < 2:
            return
        at = last.start + where % (inside[-1] - last.start)
        self.crash()
        (self.root / ".kafka2011_recovery_points").unlink()
        data = bytearray(last.path.read_bytes())
        data[at - last.start] ^= 0x40
        good = last.path.read_bytes()
        last.path.write_bytes(bytes(data))
        store = LogStore(self.root, SETTINGS, clock=self.clock)
        store.open()
        try:
            log = store.get("t", 0)
            # An ignored attribute bit, or a codec bit of an outer entry, is not covered by a CRC (docs/protocol.md).
            assert log is not None
            assert log.end_offset == self.end, "flushed messages were dropped silently"
        except LogCorrupt:
            aside = last.path.with_name(last.path.name + ".corrupt")
            if aside.exists():
                aside.rename(last.path)
        store.close()
        last.path.write_bytes(good)
        self.open()
        self.flushed = self.end

    def crash(self) -> None:
        assert self.store._lock is not None
        self.store._lock.release()
        self.store._lock = None

    def spoil(self, at: int, how: str) -> None:
        lost_whole = False
        for info in self.log.segments():
            if info.start + info.size <= at and not lost_whole:
                continue
            if lost_whole or info.start > at:
                info.path.unlink(missing_ok=True)
                continue
            keep = at - info.start
            data = info.path.read_bytes()
            filler = {"cut": b"", "zeros": bytes(len(data) - keep), "garbage": b"\xa5" * (len(data) - keep)}[how]
            info.path.write_bytes(data[:keep] + filler)
            lost_whole = True

    @invariant()
    def readable_is_the_flushed_prefix(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.first_offset, self.log.flushed_offset) == (self.first, self.flushed)
        got, offset = [], self.first
        while offset < self.flushed:
            with self.log.read(offset, 45) as piece:
                data = piece.read()
            try:
                messages = decode_set(data, offset)
            except WireError as error:
                raise AssertionError(f"unreadable at {offset}: {error}") from error
            assert messages, f"nothing at {offset}"
            got += [(m.offset, m.payload) for m in messages]
            offset = messages[-1].next_offset
        assert offset == self.flushed
        assert got == [m for m in self.messages if m[0] < self.flushed]

    @invariant()
    def outside_is_out_of_range(self) -> None:
        if not hasattr(self, "log"):
            return
        for offset in (self.first - 1, self.flushed + 1):
            try:
                self.log.read(offset, 10).close()
            except OffsetOutOfRange:
                continue
            raise AssertionError(f"{offset} was readable")
        assert self.log.read(self.flushed, 10).size == 0
