"""Message sets on their way in: checked once, gathered, appended with one write per log and read.

Paper: §3.1 ("each time a producer publishes a message to a partition, the broker simply appends the message to the
last segment file"), §5 (batches).

A producer that sends message by message makes thousands of tiny requests per read of the socket. Consecutive requests
to one partition are checked as one set and written with one system call; only if that check finds anything but whole,
good messages are they looked at one by one, so the outcome is the same. Nothing is held beyond the read.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka2011.errors import InvalidRequest, LogError, WireError
from kafka2011.log.log import Log
from kafka2011.wire import validate_set
from kafka2011.wire.produce import read_produce

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

PRODUCE = b"\x00\x00"
"""The key of a PRODUCE request."""
_size = struct.Struct(">i").unpack_from
_NONE = b"no request begins like this"
_LARGE = 2048


@dataclass(slots=True)
class _Pending:
    room: int
    """How many bytes the active segment takes before the next append must roll (spec §2.4)."""
    sets: list[bytes] = field(default_factory=list)
    size: int = 0
    n_messages: int = 0


class Intake:
    """The produce side of one connection. Thread: reactor.

    Errors of the kind that close a connection are raised; what came before them is appended by ``finish``.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._max_payload = broker.config.integer("max.message.size")
        # The last request's beginning (key, topic, partition) and its log: the next is mostly the same.
        self._prefix = _NONE
        self._log: Log | None = None
        self._run: list[bytes] = []
        """Consecutive frames for ``_log`` that begin with ``_prefix``, their sets not checked yet."""
        self._pending: dict[Log, _Pending] = {}

    def take(self, frames: deque[bytes]) -> int:
        """Take the PRODUCE frames at the head of ``frames``; return how many."""
        before = len(frames)
        while frames:
            frame = frames.popleft()
            prefix, run = self._prefix, self._run
            at = len(prefix) + 4
            if frame.startswith(prefix) and len(frame) >= at and _size(frame, at - 4)[0] == len(frame) - at:
                # Mostly the next ones are of the same size, too: then their heads are the same bytes.
                head, length = frame[:at], len(frame)
                run.append(frame)
                while frames:
                    frame = frames.popleft()
                    if len(frame) != length or not frame.startswith(head):
                        frames.appendleft(frame)
                        break
                    run.append(frame)
            elif frame.startswith(PRODUCE):
                self._produce(frame)
            else:
                frames.appendleft(frame)
                break
        return before - len(frames)

    def _produce(self, frame: bytes) -> None:
        """Take a frame that does not continue a run."""
        self._end_run()
        try:
            request, _ = read_produce(frame, 2)
        except struct.error:
            raise InvalidRequest(f"a produce of {len(frame)} bytes that ends before its fields do") from None
        log = self._log_of(request.topic, request.partition)
        if log is not None:
            # Partition -1 is a new choice each time (spec §3.5), unless there is only one to choose.
            if request.partition >= 0 or self._broker.store.partition_count(request.topic) == 1:
                self._prefix, self._log = frame[: 8 + len(request.topic.encode())], log
            self._check(log, request.data)

    def add(self, topic: str, partition: int, data: bytes) -> None:
        """Take one set of a MULTIPRODUCE."""
        self._end_run()
        log = self._log_of(topic, partition)
        if log is not None:
            self._check(log, data)

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
            return self._broker.log_for_produce(topic, partition)
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
                summary = validate_set(data)
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

    def _check(self, log: Log, data: bytes) -> None:
        """Validate one set and take its valid bytes (spec §2.4); raise if the connection must be closed."""
        summary = validate_set(data)
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
