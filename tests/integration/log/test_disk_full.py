"""A file or a disk that can take no more, for real (docs/reliability.md)."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import LogFull
from kafka2011.log import LogSettings, LogStore
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, decode_set, encode_set
from since2011.wire.error_codes import ErrorCode
from tests.integration.log.conftest import RunWriter, check_directory
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until


def test_a_file_size_limit(tmp_path: Path, run_writer: RunWriter) -> None:
    """At the limit of the process the write comes up short: it is taken back, the process lives and stops cleanly."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1234, 1234))

    code, flushed, last = run_writer(tmp_path, preexec=limit)
    assert (code, last) == (0, "end")
    assert 0 < flushed <= 1234
    assert check_directory(tmp_path, flushed) == flushed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True
    ) if os.geteuid() == 0 else None  # fmt: skip
    if mounted is None or mounted.returncode:
        pytest.skip("mounting a tmpfs needs root and the permission to mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    """Refused whole when full; reads go on; when something else is deleted the log goes on without a restart."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(600_000))
    store = LogStore(small_disk / "data", LogSettings(file_size=100_000))
    store.open()
    log = store.get_or_create("t", 0)
    data = encode_set([b"x" * 3000])
    with pytest.raises(LogFull):
        while True:
            log.append(data, 1)
    full_at = log.end_offset
    assert full_at % len(data) == 0
    assert sum(segment.path.stat().st_size for segment in log.segments()) == full_at
    log.flush()
    with pytest.raises(LogFull):
        log.append(data, 1)
    with log.read(0, len(data)) as piece:
        assert decode_set(piece.read())[0].payload == b"x" * 3000
    ballast.unlink()
    assert log.append(data, 1) == (full_at, full_at + len(data))
    assert log.flush() == full_at + len(data)
    store.close()


def fill(path: Path) -> None:
    """Write until not a byte more goes."""
    with open(path, "ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


@pytest.mark.parametrize("lock_file", ["kept", "removed"])
def test_a_broker_starts_on_a_full_disk(small_disk: Path, lock_file: str) -> None:
    """Issue 19 B7: it serves what is stored on both ports, says what to free, and takes messages when there is room."""
    options = {"modern.port": 0, "log.format": "2011", "produce.acks.enable": True, "log.flush.interval": 1}
    ballast = small_disk / "ballast"
    with BrokerProcess(small_disk / "data", options) as broker:
        data = encode_set([b"stored"])
        with BrokerConnection(broker.host, broker.port) as client:
            client.produce_acked("t", 0, data, AckLevel.FLUSHED)
        WireClient(broker.modern_port or 0).produce("t", [b"modern"], acks=-1)
        broker.kill()
        if lock_file == "removed":
            (broker.log_dir / ".kafka2011_lock").unlink()
        fill(ballast)
        for _ in range(2):
            broker.restart()
            assert "no room on the disk" in broker.http("/healthz")
            assert "log.retention.hours" in broker.state()["no_room"]
            with BrokerConnection(broker.host, broker.port) as client:
                assert decode_set(client.fetch("t", 0, 0))[0].payload == b"stored"
                with pytest.raises(LogFull):
                    client.produce_acked("t", 0, encode_set([b"x" * 9000]), AckLevel.FLUSHED)
            modern = WireClient(broker.modern_port or 0)
            assert modern.produce("t", [b"x" * 9000], acks=-1).error == ErrorCode.KAFKA_STORAGE_ERROR
            broker.kill()
        broker.restart()
        ballast.unlink()
        with BrokerConnection(broker.host, broker.port) as client:
            client.produce_acked("t", 0, data, AckLevel.FLUSHED)
        assert WireClient(broker.modern_port or 0).produce("t", [b"modern"], acks=-1).error == ErrorCode.NONE
        until(lambda: broker.http("/healthz") == "ok\n", "there is room again")
        assert "room_again" in broker.output
        assert "Traceback" not in broker.output
