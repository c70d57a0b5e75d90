"""``make bench-guard``: six costs as multiples of fixed work in the same process; fails if one has grown.

For the check before a release, not for ``make test``. The fixed work is what Python itself does with the same bytes
(copying, slicing, ``zlib.crc32``), timed in turns with the cell, so that a slow or busy machine changes both alike.
CPU time is measured, and of all turns the quickest of each counts.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from kafka2011.log.log import Log
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.wire import Codec, FrameSplitter, ProduceRequest, encode_set, read_set, validate_set, walk

TURNS = 40
TOLERANCE = 1.6
"""A cell may cost this much more than noted below before the guard fails."""

_source = random.Random(23)
PAYLOADS = [_source.randbytes(max(1, min(4000, round(_source.lognormvariate(5.0, 0.8))))) for _ in range(5_000)]
DATA = encode_set(PAYLOADS)
GZIP = b"".join(encode_set(PAYLOADS[at : at + 50], codec=Codec.GZIP) for at in range(0, 5_000, 50))
REQUESTS = b"".join(ProduceRequest("t", 0, encode_set(PAYLOADS[at : at + 50])).encode() for at in range(0, 5_000, 50))


def fixed_work() -> None:
    """What everything is measured by: each payload sliced out and its CRC taken."""
    at = 0
    for payload in PAYLOADS:
        zlib.crc32(DATA[at + 10 : at + 10 + len(payload)])
        at += 10 + len(payload)


def consume() -> None:
    """Check a fetched set and look at every message."""
    for message in read_set(DATA):
        len(message.payload)


def consume_gzip() -> None:
    """The same out of wrappers."""
    for message in read_set(GZIP):
        len(message.payload)


class Appending:
    """Appends of small sets to many logs."""

    def __init__(self, directory: Path) -> None:
        store = LogStore(directory, LogSettings(num_partitions=100))
        store.open()
        self.store = store
        self.logs: list[Log] = [store.get_or_create("t", partition) for partition in range(100)]
        self.set = encode_set(PAYLOADS[:50])

    def __call__(self) -> None:
        for log in self.logs:
            log.append(self.set, 50)


def cost(work: Callable[[], object]) -> float:
    """CPU seconds of the quickest turn, as a multiple of the quickest turn of the fixed work."""
    ours, fixed = [], []
    for _ in range(TURNS):
        for what, into in ((fixed_work, fixed), (work, ours)):
            began = time.process_time()
            what()
            into.append(time.process_time() - began)
    return min(ours) / min(fixed)


NOTED = {
    "compiled": {"validate": 0.1, "encode": 0.26, "consume": 0.43, "consume gzip": 2.5, "split": 0.07, "append": 0.65},
    "pure": {"validate": 0.85, "encode": 0.7, "consume": 1.5, "consume gzip": 4.0, "split": 0.09, "append": 0.65},
}
"""Costs when this was written, by walker."""


def main() -> int:
    """Measure and compare."""
    walker = "compiled" if walk.is_compiled else "pure"
    with tempfile.TemporaryDirectory() as directory:
        appending = Appending(Path(directory))
        cells: dict[str, Callable[[], object]] = {
            "validate": lambda: validate_set(DATA),
            "encode": lambda: encode_set(PAYLOADS),
            "consume": consume,
            "consume gzip": consume_gzip,
            "split": lambda: FrameSplitter().feed(REQUESTS),
            "append": appending,
        }
        found = {name: cost(work) for name, work in cells.items()}
        appending.store.close()
    slow = []
    for name, value in found.items():
        noted = NOTED[walker][name]
        told = "ok" if value <= TOLERANCE * noted else "SLOWER"
        if told != "ok":
            slow.append(name)
        print(f"{name:14} {value:6.2f}  (noted {noted:.2f}, {walker}) {told}")
    if slow:
        print(f"slower than noted by more than {TOLERANCE:g}: {', '.join(slow)}", file=sys.stderr)
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
