"""Files of a split: few are open, memory is bounded, and they are no larger than need be (issue 21 points 4, 15)."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hadoop_etl import files
from hadoop_etl.files import SplitFiles

SCHEMA = pa.schema([("koffset", pa.int64()), ("page", pa.string())])


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"koffset": range(first, first + count), "page": ["/home"] * count}, schema=SCHEMA)


def days(number: int) -> list[dict[str, str]]:
    return [{"dt": f"{2000 + i // 360:04}-{i // 30 % 12 + 1:02}-{i % 30 + 1:02}"} for i in range(number)]


@pytest.fixture
def few_handles() -> object:
    """As many more as a file or two needs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_thousand_days_need_no_thousand_files_at_once(tmp_path: Path, few_handles: object) -> None:
    """1,100 days in one split: they are written one after the other (issue 21 point 4)."""
    made = SplitFiles(str(tmp_path), "stem", SCHEMA)
    for turn in range(3):
        for number, keys in enumerate(days(1100)):
            made.add(keys, rows(1000 * number + turn, 1))
    written = made.close()
    assert sum(file.rows for file in written) == 3300
    assert len({file.path for file in written}) == len(written) == 1100


def test_many_days_with_many_rows_stay_within_memory_and_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When much is gathered the largest is written; when many are open the first is finished, and goes on elsewhere."""
    monkeypatch.setattr(files, "MAX_WAITING", 40_000)
    monkeypatch.setattr(files, "MAX_OPEN", 3)
    made = SplitFiles(str(tmp_path), "stem", SCHEMA)
    before, most = len(os.listdir("/proc/self/fd")), 0
    for turn in range(20):
        for number, keys in enumerate(days(10)):
            made.add(keys, rows(10_000 * number + 100 * turn, 100))
            most = max(most, len(os.listdir("/proc/self/fd")) - before)
    written = made.close()
    assert most <= 5
    assert len({file.path for file in written}) == len(written) > 10
    found = ds.dataset([str(tmp_path / file.path) for file in written]).to_table().column("koffset").to_pylist()
    assert sorted(found) == sorted(10_000 * n + 100 * t + i for n in range(10) for t in range(20) for i in range(100))


def test_numbers_that_hardly_repeat_are_written_as_differences(tmp_path: Path) -> None:
    """Offsets, times and counters take a fraction of a full number; so a table is no larger than its events alone."""
    count = 50_000
    dice = np.random.default_rng(1)
    offsets = np.cumsum(dice.integers(150, 190, count))
    times = 1_307_847_600_000 + 7 * np.arange(count) + dice.integers(0, 50, count)
    events = {
        "timestamp": pa.array(times),
        "user": pa.array([f"user-{i}" for i in dice.integers(0, 10_000, count)]),
        "page": pa.array([f"/p/{i}" for i in dice.integers(0, 500, count)]),
        "n": pa.array(np.arange(count)),
    }
    ours = {"koffset": pa.array(offsets), "knext": pa.array(offsets + 170), "kpart": pa.array([0] * count, pa.int32())}
    moments = pa.array(times).cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    table = pa.table({**ours, "ts": moments, **events})
    made = SplitFiles(str(tmp_path), "stem", table.schema)
    made.add({"dt": "2011-06-12"}, table)
    (written,) = made.close()
    # What another writer makes of the events alone, without a column of ours.
    pq.write_table(pa.table(events), tmp_path / "other.parquet", compression="zstd", compression_level=3)
    assert written.size <= 1.1 * (tmp_path / "other.parquet").stat().st_size
    assert pq.read_table(tmp_path / written.path, partitioning=None).equals(table)
