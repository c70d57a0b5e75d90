"""Does appending or fetching cost more when there is more data already?

Paper: §3.1 (the page cache, not the process, caches), §5 (performance does not depend on how much data is retained).

One broker for each amount of data, filled before anything is measured. Then rounds in which they take turns: the same
bytes are appended to each, and to a plain file beside them, in the same flush rhythm; then read from each, and from the
plain file. Whatever the machine does meanwhile (its page cache fills, its disk writes back), it does to all of them, so
what is left between two lines of the table is the broker. Every turn begins on a settled disk.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from benchmarks.broker_rows import FETCH_BYTES, FLUSH, FLUSH_MESSAGES, fill, read_raw
from benchmarks.limits import MB, Loops
from benchmarks.measure import say
from benchmarks.system import MESSAGE_SIZE
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import LATEST

TOPIC = "growth"
SEGMENT_BYTES = 256 * MB
SPARE_BYTES = 2000 * MB
"""Free space that must be left beside the logs: the peers keep data there too."""
_WRITE_BYTES = 250_000
"""About what a broker writes at once: what one read of its socket brings."""
_SYNC_BYTES = FLUSH_MESSAGES * (MESSAGE_SIZE + 10)
_READ_FACTOR = 8
"""Reading is so much faster that it takes more bytes to measure it."""
_QUIET_BYTES = 16 * MB
_SETTLE_S = 45.0
"""The kernel writes everything back after about 35 s unless more is coming."""


class NotEnoughRoom(Exception):
    """The disk is too small for what was asked."""


@dataclass(slots=True)
class Kind:
    """Appending or fetching: the rate of each round, and the CPU of all of them."""

    rates: list[float] = field(default_factory=list)
    size: int = 0
    cpu_s: float = 0.0

    def add(self, size: int, seconds: float, cpu_s: float) -> None:
        self.rates.append(size / MB / seconds)
        self.size += size
        self.cpu_s += cpu_s

    def against(self, other: Kind) -> float:
        """The median, over the rounds, of this rate to the other's in the same round."""
        return round(statistics.median(a / b for a, b in zip(self.rates, other.rates, strict=True)), 2)

    @property
    def mb_per_s(self) -> int:
        return round(statistics.median(self.rates))

    @property
    def cpu_ms_per_mb(self) -> float:
        return round(1000 * self.cpu_s / (self.size / MB), 2)


class Turn(Protocol):
    """What takes its turn in each round."""

    appended: Kind
    fetched: Kind

    def append(self, size: int) -> None: ...
    def fetch(self, size: int) -> None: ...


class Grown:
    """A broker that holds ``size`` bytes already."""

    def __init__(self, loops: Loops, broker: BrokerProcess, connection: BrokerConnection, size: int) -> None:
        self._loops, self._broker, self._connection = loops, broker, connection
        self._process = psutil.Process(broker.pid)
        self.appended, self.fetched = Kind(), Kind()
        self.begun = fill(connection, TOPIC, size)[0]

    @property
    def rss(self) -> int:
        """Resident memory of the broker."""
        found: int = self._process.memory_info().rss
        return found

    @property
    def end(self) -> int:
        """Bytes in the log."""
        return self._connection.offsets(TOPIC, 0)[0]

    def append(self, size: int) -> None:
        """Append ``size`` bytes and wait until consumers could read them."""
        before = self._cpu_s()
        moved, seconds = fill(self._connection, TOPIC, size)
        self.appended.add(moved, seconds, self._cpu_s() - before)

    def fetch(self, size: int) -> None:
        """Read ``size`` bytes of the newest segment, or the one before it if that is longer, again and again."""
        end, *starts = self._connection.offsets(TOPIC, 0, LATEST, 3)
        segments = [(start, stop - start) for start, stop in zip(starts, [end, *starts], strict=False)]
        start, span = max(segments, key=lambda segment: segment[1])
        before = self._cpu_s()
        moved = read_raw(self._loops, self._broker, TOPIC, start, span, size)
        self.fetched.add(moved.size, moved.seconds, self._cpu_s() - before)

    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)


class Plain:
    """A file that grows by the same bytes in the same rhythm, without a broker."""

    def __init__(self, loops: Loops, path: Path) -> None:
        self._loops, self._path = loops, path
        self.appended, self.fetched = Kind(), Kind()

    def append(self, size: int) -> None:
        """Append ``size`` bytes, syncing in a thread as often as the broker does."""
        moved = self._loops.append(self._path, size, _WRITE_BYTES, _SYNC_BYTES)
        self.appended.add(moved.size, moved.seconds, moved.cpu_s)

    def fetch(self, size: int) -> None:
        """Send the file with sendfile."""
        moved = self._loops.sendfile(self._path, size, FETCH_BYTES)
        self.fetched.add(moved.size, moved.seconds, moved.cpu_s)


def check_room(directory: Path, sizes: list[int], rounds: int, step: int) -> None:
    """Raise NotEnoughRoom if the logs would not fit."""
    need = sum(sizes) + (len(sizes) + 1) * rounds * step + SPARE_BYTES
    free = shutil.disk_usage(directory).free
    if free < need:
        raise NotEnoughRoom(
            f"logs that grow to {sizes[-1] // MB:,} MB need {need // MB:,} MB in {directory}, where {free // MB:,} MB "
            "are free; make room, or name a directory on another disk with --work"
        )


def growth(loops: Loops, directory: Path, sizes: list[int], rounds: int, step: int) -> dict[str, object]:
    """A row for each of ``sizes``, and one for the plain file: medians of ``rounds`` of ``step`` bytes."""
    check_room(directory, sizes, rounds, step)
    options = FLUSH | {"log.file.size": SEGMENT_BYTES}
    unsettled = 0
    with ExitStack() as stack:
        brokers = []
        for number, size in enumerate(sizes):
            say(f"growth  filling a broker with {size // MB:,} MB")
            broker = stack.enter_context(BrokerProcess(directory / f"growth-{number}", options))
            connection = stack.enter_context(BrokerConnection(broker.host, broker.port))
            brokers.append(Grown(loops, broker, connection, size))
        plain = Plain(loops, directory / "plain")
        turns: list[Turn] = [*brokers, plain]
        order = random.Random(2011)
        for number in range(rounds):
            # In an order of its own each time: whoever comes after the plain file may have it easier, or harder.
            for turn in order.sample(turns, len(turns)):
                unsettled += not settle()
                turn.append(step)
                turn.fetch(_READ_FACTOR * step)
            rates = ", ".join(f"{turn.appended.rates[-1]:.0f}/{turn.fetched.rates[-1]:.0f}" for turn in turns)
            say(f"growth  round {number + 1}/{rounds}  MB/s appended/fetched, the plain file last: {rates}")
        rows = [_row(broker, brokers[0], plain) for broker in brokers]
        rows.append(_row(plain, brokers[0], plain))
    return {"rounds": rounds, "step_mb": step // MB, "unsettled_turns": unsettled, "rows": rows}


def settle() -> bool:
    """Wait until the machine has next to nothing left to write back; say so if it never comes to rest."""
    deadline = time.monotonic() + _SETTLE_S
    while (dirty := dirty_bytes()) > _QUIET_BYTES:
        if time.monotonic() > deadline:
            say(f"the disk did not settle in {_SETTLE_S:.0f} s: {dirty // MB} MB are still to be written; going on")
            return False
        time.sleep(0.05)
    return True


def dirty_bytes() -> int:
    """Bytes in the page cache that are not on disk yet, of all processes."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[name].split()[0]) << 10 for name in ("Dirty", "Writeback"))


def _row(turn: Grown | Plain, smallest: Grown, plain: Plain) -> dict[str, object]:
    is_broker = isinstance(turn, Grown)
    return {
        "log_mb": f"{turn.begun // MB:,} to {turn.end // MB:,}" if is_broker else "no broker: a plain file",
        "append_mb_per_s": turn.appended.mb_per_s,
        "of_plain": turn.appended.against(plain.appended),
        "of_smallest": turn.appended.against(smallest.appended) if is_broker else None,
        "cpu_ms_per_mb": turn.appended.cpu_ms_per_mb,
        "fetch_mb_per_s": turn.fetched.mb_per_s,
        "of_sendfile": turn.fetched.against(plain.fetched),
        "of_smallest_fetch": turn.fetched.against(smallest.fetched) if is_broker else None,
        "fetch_cpu_ms_per_mb": turn.fetched.cpu_ms_per_mb,
        "rss_mb": round(turn.rss / MB) if is_broker else None,
    }
