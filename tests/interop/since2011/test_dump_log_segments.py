"""Real Kafka reads our files: its own DumpLogSegments finds every batch, every index entry, every producer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from since2011.log.cleaner_choice import clean_range
from since2011.log.settings import LogConfig
from since2011.log.swap import clean_log
from tests.interop.since2011.real_kafka import run_tool
from tests.unit.since2011.bench import Bench, no_codec
from tests.unit.since2011.vectors import T


@pytest.fixture
def written(tmp_path: Path) -> Bench:
    """Three segments with transactions, committed and aborted, closed cleanly, then cleaned in part."""
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=6000, index_interval_bytes=300, segment_ms=10**12)
    bench = Bench(tmp_path / "clicks-0", config)
    for number in range(200):
        bench.send((b"k%d" % number, b"v%d" % number), at=T + number)
        if number % 20 == 5:
            bench.send_in_transaction(9, number // 20, b"t%d" % number, b"x")
        if number % 20 == 15:
            bench.end(9, commit=number % 40 == 15)
    bench.send((b"k0", None))
    return bench


def dump(bench: Bench, *options: str) -> str:
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(path.name for path in bench.directory.iterdir() if path.suffix in kinds)
    return run_tool("kafka.tools.DumpLogSegments", "--files", ",".join(files), *options, cwd=bench.directory)


def test_kafkas_own_tool_finds_nothing_wrong(written: Bench) -> None:
    """DumpLogSegments of Kafka 3.9 reads log, indexes, aborted transactions and producers without a mismatch."""
    written.log.close()
    shown = dump(written, "--print-data-log", "--deep-iteration")
    sanity = dump(written, "--index-sanity-check")

    assert not re.search("mismatch|isvalid: false|not found|Exception", shown), shown
    assert "passed sanity check" in sanity
    assert re.findall(r"payload: (v\d+)", shown) == [f"v{n}" for n in range(200)]
    assert shown.count("endTxnMarker: COMMIT") == 5
    assert len(re.findall(r"^version: 0 producerId: 9", shown, re.MULTILINE)) == 5


def test_kafkas_own_tool_reads_what_the_cleaner_wrote(written: Bench) -> None:
    """A cleaned log is still a log to Kafka 3.9: batches rewritten, indexes of the new files without a mismatch."""
    found = clean_range(written.log, None, T + 1000)
    clean_log(written.log, found.first_dirty, found.first_uncleanable, no_codec, no_codec)
    written.log.close()
    shown = dump(written, "--print-data-log", "--deep-iteration")

    assert not re.search("mismatch|isvalid: false|not found|Exception", shown), shown
    assert "payload: x" in shown
    assert re.findall(r"payload: (v\d+)", shown) == [f"v{n}" for n in range(200)]
