"""Message sets on their way in: checked once, gathered, appended with one write per log and read.

Paper: §3.1 ("each time a producer publishes a message to a partition, the broker simply appends the message to the
last segment file"), §5 (batches).

A producer that sends message by message makes thousands of tiny requests per read of the socket. Consecutive requests
to one partition are checked as one set and written with one system call; only if that check finds anything but whole,
good messages are they looked at one by one, so the outcome is the same. Nothing is held beyond the read, but for sets
that take long to check: those are checked in a thread, and until then the connection reads nothing more.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kafka2011.broker.long_work import QUICK_BYTES, check_quickly, quick_budget
from kafka2011.errors import InvalidRequest, LogError, WireError
from kafka2011.log.log import Log
from kafka2011.wire import Budget, SetSummary, validate_set
from kafka2011.wire.produce import read_produce

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

PRODUCE = b"\x00\x00"
"""The key of a PRODUCE request."""
_size = struct.Struct(">i").unpack_from
_NONE = b"no request begins like this"
_LARGE = 2048
_MOST_LOGS = 4096
TURN_S = 0.02
"""How long one connection may keep the network's thread before others have their turn."""


@dataclass(slots=True)
class _Pending:
    room: int
    """How many bytes the active segment takes before the next append must roll (docs/log.md)."""
    sets: list[bytes] = field(default_factory=list)
    size: int = 0
    n_messages: int = 0


class _Slow(NamedTuple):
    """A set that takes long to check, and what its request may still spend."""

    log: Log
    data: bytes
    budget: Budget


class Intake:
    """The produce side of one connection. Thread: reactor.

    Errors of the kind that close a connection are raised; what came before them is appended by ``finish``.
    """

    def __init__(self, broker: Broker, address: str) -> None:
        self._broker, self._address = broker, address
        self._max_payload = broker.config.integer("max.message.size")
        # The last request's beginning (key, topic, partition) and its log: the next is mostly the same.
        self._prefix = _NONE
        self._log: Log | None = None
        self._logs: dict[bytes, Log] = {}
        """The logs of requests that began like this before."""
        self._run: list[bytes] = []
        """Consecutive frames for ``_log`` that begin with ``_prefix``, their sets not checked yet."""
        self._pending: dict[Log, _Pending] = {}
        self._turn = quick_budget()
        self._turn_ends = 0.0
        self._slow: list[_Slow] = []
        """Sets to be checked in a thread; what comes after them waits."""

    def is_slow(self) -> bool:
        """Whether there are sets that must be checked in a thread before anything else is taken."""
        return bool(self._slow)

    def slow_bytes(self) -> int:
        """Bytes of the sets that must be checked in a thread."""
        return sum(len(one.data) for one in self._slow)

    def new_turn(self) -> None:
        """Another read: again something may be checked at once."""
        self._turn = quick_budget()
        self._turn_ends = self._broker.now() + TURN_S

    def turn_is_over(self) -> bool:
        """Whether others should be served first: three thousand new topics in one read take seconds."""
        return self._broker.now() > self._turn_ends

    def take(self, frames: deque[bytes]) -> int:
        """Take the PRODUCE frames at the head of ``frames``, as many as a turn allows; return how many."""
        before = len(frames)
        prefix, run, at = self._prefix, self._run, len(self._prefix) + 4
        head, length = _NONE, -1
        while frames and not self._slow:
            frame = frames.popleft()
            if len(frame) == length and frame.startswith(head):
                run.append(frame)  # of the size of the one before it, hence with the same head
            elif frame.startswith(prefix) and len(frame) >= at and _size(frame, at - 4)[0] == len(frame) - at:
                run.append(frame)
                head, length = frame[:at], len(frame)
            elif frame.startswith(PRODUCE):
                self._end_run()
                if self._slow:
                    frames.appendleft(frame)
                    break
                known = self._prefix_of(frame)
                if known != prefix and known in self._logs:
                    # A log that was written to before: a run of its own begins.
                    self._prefix, self._log = known, self._logs[known]
                    frames.appendleft(frame)
                else:
                    self._produce(frame)
                prefix, run, at, length = self._prefix, self._run, len(self._prefix) + 4, -1
                if self.turn_is_over():
                    break
            else:
                frames.appendleft(frame)
                break
        return before - len(frames)

    def _prefix_of(self, frame: bytes) -> bytes:
        """Key, topic and partition, if ``frame`` is long enough to have them."""
        return frame[: 8 + int.from_bytes(frame[2:4], "big")]

    def _produce(self, frame: bytes) -> None:
        """Take a frame that does not continue a run."""
        try:
            request, _ = read_produce(frame, 2)
        except struct.error:
            raise InvalidRequest(f"a produce of {len(frame)} bytes that ends before its fields do") from None
        log = self._log_of(request.topic, request.partition)
        if log is not None:
            # Partition -1 is a new choice each time (docs/protocol.md), unless there is only one to choose.
            if request.partition >= 0 or self._broker.store.partition_count(request.topic) == 1:
                self._prefix, self._log = self._prefix_of(frame), log
                if len(self._logs) < _MOST_LOGS:
                    self._logs[self._prefix] = log
            self._check(log, request.data)

    def add(self, topic: str, partition: int, data: bytes, budget: Budget) -> None:
        """Take one set of a MULTIPRODUCE, all of whose sets share a ``budget``."""
        self._end_run()
        log = self._log_of(topic, partition)
        if log is not None:
            self._check(log, data, budget)

    def check_slow(self) -> list[SetSummary | WireError]:
        """Check the sets that take long, up to the first bad one. Thread: any, while the connection waits."""
        found: list[SetSummary | WireError] = []
        for one in self._slow:
            try:
                found.append(validate_set(one.data, budget=one.budget))
            except WireError as error:
                found.append(error)
                break
        return found

    def take_slow(self, found: list[SetSummary | WireError]) -> None:
        """Take what ``check_slow`` found good; raise its verdict on the first that is not."""
        slow, self._slow = self._slow, []
        for one, verdict in zip(slow, found, strict=False):
            if isinstance(verdict, WireError):
                raise verdict
            self._checked(one.log, one.data, verdict)

    def finish(self) -> None:
        """Append everything taken so far; called at the end of each read and before any request that answers."""
        try:
            self._end_run()
        finally:
            while self._pending:
                self._append(*self._pending.popitem())

    def _log_of(self, topic: str, partition: int) -> Log | None:
        """The log of a set; None, counted, if it cannot be had now (offline, or too many topics)."""
        try:
            return self._broker.log_for_produce(topic, partition, self._address)
        except LogError as error:
            self._broker.dropped(topic, partition, type(error).__name__, str(error))
            return None

    def _end_run(self) -> None:
        run, log = self._run, self._log
        if not run or log is None:
            return
        self._run = []
        at = len(self._prefix) + 4
        if len(run) > 1:
            # Small sets are cut out, large ones joined from where they are: each is the quicker way for its size.
            small = len(run[0]) < _LARGE
            data = b"".join([frame[at:] for frame in run] if small else [memoryview(frame)[at:] for frame in run])
            try:
                summary = check_quickly(data, self._turn, 2 * QUICK_BYTES)
            except WireError:
                summary = None
            if (
                summary is not None
                and summary.size == len(data)
                and summary.largest_payload <= self._max_payload
                and self._fits(log, len(data))
            ):
                self._take(log, data, summary.n_messages)
                return
        # Something is special about one of them: a bad message, a cut tail, a payload too large, a roll to come.
        for frame in run:
            self._check(log, frame[at:])

    def _check(self, log: Log, data: bytes, budget: Budget | None = None) -> None:
        """Validate one set and take it, or leave it for ``check_slow``; raise if the connection must be closed."""
        summary = None if self._slow else check_quickly(data, self._turn)
        if summary is None:
            self._slow.append(_Slow(log, data, budget or self._broker.request_budget()))
        else:
            self._checked(log, data, summary)

    def _checked(self, log: Log, data: bytes, summary: SetSummary) -> None:
        """Take the valid bytes of a set (docs/log.md)."""
        if summary.largest_payload > self._max_payload:
            reason = f"a payload of {summary.largest_payload} bytes; max.message.size is {self._max_payload}"
            self._broker.dropped(log.topic, log.partition, "too_large", reason)
        elif summary.size:
            self._take(log, data if summary.size == len(data) else data[: summary.size], summary.n_messages)

    def _fits(self, log: Log, size: int) -> bool:
        """Tell whether sets of ``size`` bytes together would have gone to one segment one by one."""
        pending = self._pending.get(log)
        return size <= log.room if pending is None else pending.size + size <= pending.room

    def _take(self, log: Log, data: bytes, n_messages: int) -> None:
        pending = self._pending.get(log)
        if pending is not None and pending.size > pending.room:
            self._append(log, self._pending.pop(log))
            pending = None
        if pending is None:
            pending = self._pending[log] = _Pending(log.room)
        pending.sets.append(data)
        pending.size += len(data)
        pending.n_messages += n_messages

    def _append(self, log: Log, pending: _Pending) -> None:
        sets = pending.sets
        try:
            self._broker.append_to(log, sets[0] if len(sets) == 1 else b"".join(sets), pending.n_messages)
        except LogError as error:
            self._broker.dropped(log.topic, log.partition, type(error).__name__, str(error), n_sets=len(sets))
