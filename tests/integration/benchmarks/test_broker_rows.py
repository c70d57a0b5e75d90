"""The benchmark's own rows: the loops move what they say, the raw reader reads, the tables can be written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import broker_rows, growth, report
from benchmarks.__main__ import main as benchmarks
from benchmarks.limits import Loops, make_loops, measure_limits
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from tests.waiting import until


@pytest.fixture(scope="module", params=["C", "Python"])
def loops(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loops:
    """The loops, once compiled and once as they are without a compiler."""
    if request.param == "Python":
        return make_loops(tmp_path_factory.mktemp("loops"), "no-such-compiler")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    return make_loops(tmp_path_factory.mktemp("loops"))


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(options=broker_rows.FLUSH) as process:
        yield process


def test_the_loops_move_every_byte(loops: Loops, tmp_path: Path) -> None:
    """Loopback, append and sendfile move whole pieces up to the size asked for, in C as in Python (§3.1, §5)."""
    file = tmp_path / "file"
    moved = [loops.loopback(1_000_000, 300), loops.append(file, 1_000_000, 70_000), loops.sendfile(file, 10**6, 30_000)]

    assert [one.size for one in moved] == [999_900, 980_000, 990_000]
    assert all(one.seconds > 0 and one.cpu_s > 0 for one in moved)
    assert loops.append(file, 100_000, 10_000, 20_000).size == 100_000
    assert file.read_bytes() == b"x" * 1_080_000


def test_a_loop_that_fails_says_why(loops: Loops, tmp_path: Path) -> None:
    """A loop that cannot do its work is an error, not a rate."""
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(RuntimeError, match=r"smaller than a piece|sender failed"):
        loops.sendfile(tmp_path / "small", 1000, 10)
    with pytest.raises(RuntimeError, match="append"):
        loops.append(tmp_path / "no" / "such" / "directory", 10, 10)


def test_the_raw_reader_reads_the_whole_answer(loops: Loops, broker: BrokerProcess) -> None:
    """The reader walks over the log, gets every byte, and does not take an error for data (§3.1)."""
    with BrokerConnection(broker.host, broker.port) as connection:
        topic = f"raw-{loops.how[3]}"
        filled, _ = broker_rows.fill(connection, topic, 1_000_000)

    def sent() -> int:
        found: int = broker.state()["counters"]["fetched_bytes"].get("sendfile", 0)
        return found

    before = sent()
    assert loops.fetch(broker.port, topic, 10, filled - 10, 1000, 5_000_500, 4).size == 5_000_000
    until(lambda: sent() == before + 5_000_000, "the broker has counted them too")
    with pytest.raises(RuntimeError, match="not 1000 bytes without an error"):
        loops.fetch(broker.port, topic, filled + 1, 1000, 1000, 1000, 1)
    with pytest.raises(RuntimeError, match="not 2000 bytes without an error"):
        loops.fetch(broker.port, topic, filled - 1000, 2000, 2000, 2000, 1)


def test_without_a_compiler_the_table_says_so(tmp_path: Path) -> None:
    """The limits are C's where C can be compiled; otherwise the table names the reason."""
    refusing = tmp_path / "cc"
    refusing.write_text("#!/bin/sh\necho 'no headers' >&2\nexit 1\n")
    refusing.chmod(0o755)

    assert make_loops(tmp_path, "no-cc").how == "in Python: no-cc cannot be run (No such file or directory)"
    assert make_loops(tmp_path, str(refusing)).how == "in Python: cc could not compile limits.c (no headers)"


def test_growth_compares_in_the_same_rounds(tmp_path: Path, loops: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each amount of data has a broker, measured beside a plain file in every round; the report shows all (§5)."""
    monkeypatch.setattr(growth, "SPARE_BYTES", 0)
    monkeypatch.setattr(growth, "dirty_bytes", lambda: 0)
    grown: Any = growth.growth(loops, tmp_path, [2_000_000, 4_000_000], 3, 1_000_000)
    limits = measure_limits(loops, tmp_path, 0.01, 1)
    run: dict[str, Any] = {"limits_how": loops.how, "limits": limits, "growth": grown, "slow_disk": {"p99_ms": 1}}
    run["serving"] = broker_rows.serving(loops, tmp_path, 0.01, 3)
    page = "\n".join(report._tables(run))

    small, large, plain = grown["rows"]
    assert (small["of_smallest"], small["of_smallest_fetch"], plain["of_plain"], plain["of_sendfile"]) == (1, 1, 1, 1)
    assert [row["log_mb"].split()[0] for row in (small, large)] == ["2", "4"]
    assert all(row["append_mb_per_s"] > 0 and row["fetch_mb_per_s"] > 0 for row in grown["rows"])
    assert f"limits, {loops.how}" in page
    assert "| log, MB | append, MB/s | of the plain file's |" in page
    assert "no broker: a plain file" in page


def test_a_log_that_does_not_fit_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is measured the free space is looked at; the message says what is missing and what to do."""
    monkeypatch.setattr(growth.shutil, "disk_usage", lambda _: SimpleNamespace(free=12_000_000_000))

    done = CliRunner().invoke(benchmarks, ["--full", "--work", str(tmp_path), "--only", "kafka2011"])

    assert done.exit_code == 1
    assert "logs that grow to 10,000 MB need 14,900 MB in" in done.output
    assert "where 12,000 MB are free; make room, or name a directory on another disk with --work" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_busy_disk_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn begins when next to nothing is left to be written back, or says that it never came to that."""
    left = [10**9, 10**8, 0]
    monkeypatch.setattr(growth, "dirty_bytes", lambda: left.pop(0))

    assert growth.settle()
    assert left == []
    monkeypatch.setattr(growth, "dirty_bytes", lambda: 10**9)
    monkeypatch.setattr(growth, "_SETTLE_S", 0.0)
    assert not growth.settle()
