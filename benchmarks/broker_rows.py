"""What the broker alone does: serving raw fetches, answering while a disk is slow. (As data grows: growth.py.)

Paper: §3.1 (sendfile; flushing does not stop others).
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks.limits import MB, WARM_BYTES, Loops, Moved, warm_file
from benchmarks.system import make_payloads
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import LATEST, ProduceRequest, encode_set

FLUSH_MESSAGES = 10_000
FLUSH = {"log.flush.interval": FLUSH_MESSAGES, "log.default.flush.interval.ms": 50}
FLUSH |= {"log.default.flush.scheduler.interval.ms": 10}
FETCH_BYTES = 300_000
_SLOW_FSYNC_S = 0.3
_REQUESTS_AHEAD = 4
_SETS_PER_WRITE = 24


def fill(connection: BrokerConnection, topic: str, size: int) -> tuple[int, float]:
    """Append at least ``size`` bytes in sets of 200 messages, wait until all are flushed; return bytes and seconds."""
    data = encode_set(make_payloads(200))
    frames = ProduceRequest(topic, 0, data).encode() * _SETS_PER_WRITE
    writes = -(-size // (len(data) * _SETS_PER_WRITE))
    total = writes * len(data) * _SETS_PER_WRITE
    (start,) = connection.offsets(topic, 0, LATEST)
    started = time.perf_counter()
    for _ in range(writes):
        connection.write(frames)
    while connection.offsets(topic, 0, LATEST)[0] < start + total:
        time.sleep(0.002)
    return total, time.perf_counter() - started


def read_raw(loops: Loops, broker: BrokerProcess, topic: str, start: int, span: int, size: int) -> Moved:
    """Fetch ``size`` bytes, 300 KB a request, walking over ``span`` bytes from ``start``; the reader only counts."""
    return loops.fetch(broker.port, topic, start, span, FETCH_BYTES, size, _REQUESTS_AHEAD)


def serving(loops: Loops, directory: Path, scale: float, rounds: int = 7) -> dict[str, object]:
    """MB a second of 300 KB fetches to a raw reader, and of sendfile without a broker: the two take turns."""
    total = int(800 * MB * scale)
    warm = warm_file(directory)
    ours, limit = [], []
    with BrokerProcess(directory / "serve", FLUSH) as broker, BrokerConnection(broker.host, broker.port) as connection:
        fill(connection, "serve", WARM_BYTES)
        for _ in range(rounds):
            ours.append(read_raw(loops, broker, "serve", 0, WARM_BYTES, total).mb_per_s)
            limit.append(loops.sendfile(warm, total, FETCH_BYTES).mb_per_s)
    ratios = [a / b for a, b in zip(ours, limit, strict=True)]
    return {
        "broker_mb_per_s": round(statistics.median(ours)),
        "sendfile_mb_per_s": round(statistics.median(limit)),
        "ratio": round(statistics.median(ratios), 2),
        "aim": 0.5,
        "sendfile_and_reader": loops.how,
    }


def slow_disk(directory: Path, scale: float) -> dict[str, object]:
    """Latency of fetches from one topic while every fsync of the broker takes 300 ms for another."""
    environ = {"KAFKA2011_FAILPOINTS": f"log.flush.before_fsync=sleep:{_SLOW_FSYNC_S}"}
    count = int(2000 * scale)
    with BrokerProcess(directory / "slow", {"log.flush.interval": 1}, environ=environ) as broker:
        reader = BrokerConnection(broker.host, broker.port)
        writer = BrokerConnection(broker.host, broker.port)
        data = encode_set(make_payloads(50))
        writer.produce("quiet", 0, data)
        while not reader.fetch("quiet", 0, 0):
            time.sleep(0.01)
        times = []
        for i in range(count):
            if i % 10 == 0:
                writer.produce("busy", 0, data)
            started = time.perf_counter()
            reader.fetch("quiet", 0, 0, 300_000)
            times.append(time.perf_counter() - started)
        reader.close()
        writer.close()
    times.sort()
    return {
        "fetches": count,
        "p50_ms": round(1000 * times[count // 2], 2),
        "p99_ms": round(1000 * times[int(count * 0.99)], 2),
        "max_ms": round(1000 * times[-1], 2),
        "fsync_ms": round(1000 * _SLOW_FSYNC_S),
    }
