"""Where Spark begins to pay: the same load by ``--master inline`` and by ``local[2]``, at a few sizes.

``python -m benchmarks.etl --crossing 200000 1000000 4000000``: whole commands, as people start them, one after the
other on the same messages; the better of the rounds counts. Events of about 200 bytes, as JSON.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka2011.testing import BrokerProcess

MASTERS = ("inline", "local[2]")
BROKER = {"num.partitions": 2, "log.flush.interval": 5000, "log.default.flush.interval.ms": 500}


def crossing(sizes: Sequence[int], rounds: int, fill: Callable[[BrokerProcess, int], None], place: Path) -> None:
    """Print one line per number of rows; ``fill`` sends them to the topic ``json``."""
    for rows in sizes:
        with BrokerProcess(options=BROKER) as broker:
            fill(broker, rows)
            seconds: dict[str, list[float]] = {master: [] for master in MASTERS}
            for _ in range(rounds):
                for master in MASTERS:
                    seconds[master].append(_load(broker, master, place / "warehouse"))
        inline, spark = (min(seconds[master]) for master in MASTERS)
        print(f"{rows:>12,} rows: inline {inline:6.1f} s, local[2] {spark:6.1f} s, {spark / inline:.2f} x", flush=True)


def _load(broker: BrokerProcess, master: str, warehouse: Path) -> float:
    command = [sys.executable, "-m", "kafka2011", "etl", "run", "-w", str(warehouse), "-b", broker.address]
    began = time.monotonic()
    subprocess.run([*command, "-t", "json:json", "--master", master], capture_output=True, check=True)
    seconds = time.monotonic() - began
    shutil.rmtree(warehouse)
    return seconds
