"""What the broker alone does: serving raw fetches, staying the same as data grows, answering while a disk is slow.

Paper: §3.1 (sendfile; performance does not depend on the amount of data; the page cache, not the process, caches).
"""

from __future__ import annotations

import socket
import statistics
import time
from pathlib import Path

import psutil

from benchmarks.limits import MB, rate, sendfile
from benchmarks.measure import say
from benchmarks.system import PATIENCE_S, make_payloads
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import LATEST, FetchRequest, encode_set

_FLUSH = {"log.flush.interval": 10_000, "log.default.flush.interval.ms": 50}
_FLUSH |= {"log.default.flush.scheduler.interval.ms": 10}
_SLOW_FSYNC_S = 0.3
_REQUESTS_AHEAD = 4


def _fill(connection: BrokerConnection, topic: str, size: int) -> float:
    """Append ``size`` bytes in sets of 200 messages and wait until they are flushed; return the seconds."""
    data = encode_set(make_payloads(200))
    (start,) = connection.offsets(topic, 0, LATEST)
    started = time.perf_counter()
    for _ in range(size // len(data)):
        connection.produce(topic, 0, data)
    while connection.offsets(topic, 0, LATEST)[0] < start + size // len(data) * len(data):
        time.sleep(0.002)
    return time.perf_counter() - started


def _read_raw(broker: BrokerProcess, topic: str, start: int, size: int, fetch_size: int) -> int:
    """Fetch ``size`` bytes, a few requests ahead, and only count them: the reader costs as little as it can."""
    request = FetchRequest(topic, 0, start, fetch_size).encode()
    reply = 6 + fetch_size
    count = size // fetch_size
    buffer = bytearray(1 << 20)
    sent = received = 0
    with socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as connection:
        while received < count * reply:
            while sent < count and sent - received // reply < _REQUESTS_AHEAD:
                connection.sendall(request)
                sent += 1
            received += connection.recv_into(buffer)
    return received


def serving(directory: Path, scale: float) -> dict[str, object]:
    """MB a second of 300 KB fetches to a raw reader, and what sendfile alone does in the same minute."""
    total = int(400 * MB * scale)
    with BrokerProcess(directory / "serve", _FLUSH) as broker, BrokerConnection(broker.host, broker.port) as connection:
        _fill(connection, "serve", 32 * MB)
        ours = rate(lambda: _read_raw(broker, "serve", 0, total, 300_000))
    limit = rate(lambda: sendfile(directory, total, 300_000))
    return {"broker_mb_per_s": round(ours), "sendfile_mb_per_s": round(limit), "ratio": round(ours / limit, 2)}


def growth(directory: Path, sizes: list[int]) -> list[dict[str, object]]:
    """Append and fetch rates and resident memory as one partition grows to each of ``sizes`` bytes."""
    rows: list[dict[str, object]] = []
    with BrokerProcess(directory / "growth", _FLUSH | {"log.file.size": 256 * MB}) as broker:
        process = psutil.Process(broker.pid)
        with BrokerConnection(broker.host, broker.port) as connection:
            step = min(sizes[0], 100 * MB)
            for size in sizes:
                while connection.offsets("growth", 0)[0] < size - step:
                    _fill(connection, "growth", step)
                appended = [step / MB / _fill(connection, "growth", step // 4) / 4 for _ in range(4)]
                (end,) = connection.offsets("growth", 0)
                newest = connection.offsets("growth", 0, LATEST, 2)[-1]
                start = max(newest, end - step)
                span = max((end - start) // 300_000 * 300_000, 300_000)
                fetched = rate(lambda: _read_raw(broker, "growth", start, span, 300_000), 5)  # noqa: B023
                rows.append(
                    {
                        "log_mb": round(end / MB),
                        "append_mb_per_s": round(statistics.median(appended)),
                        "fetch_mb_per_s": round(fetched),
                        "rss_mb": round(process.memory_info().rss / MB),
                    }
                )
                say(f"growth  {rows[-1]}")
    return rows


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
