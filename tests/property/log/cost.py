"""What single steps cost on this machine: ``python -m tests.property.log.cost``. Figures for docs/log.md."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka2011.log import LogSettings, LogStore
from kafka2011.wire import decode_set, encode_set, validate_set


def best(step: Callable[[], object], n: int, rounds: int = 7) -> float:
    """Nanoseconds of processor time per message, the best of several rounds."""
    times = []
    for _ in range(rounds):
        begun = time.process_time_ns()
        step()
        times.append((time.process_time_ns() - begun) / n)
    return min(times)


def main() -> None:
    """Print one table row per step."""
    payloads = [os.urandom(200) for _ in range(5000)]
    data = encode_set(payloads)
    print("| step | ns per 200-byte message |\n|---|---:|")
    print(f"| encode a set of 5,000 | {best(lambda: encode_set(payloads), 5000):.0f} |")
    print(f"| decode 1 MB, CRC checked | {best(lambda: decode_set(data), 5000):.0f} |")
    print(f"| validate 1 MB on the broker | {best(lambda: validate_set(data), 5000):.0f} |")
    with TemporaryDirectory() as root:
        store = LogStore(Path(root), LogSettings())
        store.open()
        log = store.get_or_create("t", 0)
        fifty = encode_set(payloads[:50])
        print(f"| append, 50 at a time | {best(lambda: [log.append(fifty, 50) for _ in range(500)], 25_000):.0f} |")
        log.flush()
        end = log.flushed_offset
        messages = end // 210
        os.unlink(Path(root, ".kafka2011_recovery_points"))
        assert store._lock is not None
        store._lock.release()
        begun = time.process_time_ns()
        again = LogStore(Path(root), LogSettings())
        again.open()
        print(f"| recovery scan of {end >> 20} MB | {(time.process_time_ns() - begun) / messages:.0f} |")
        again.close()


if __name__ == "__main__":
    main()
