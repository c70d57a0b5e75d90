"""A data directory that goes to a real Kafka 0.7 broker and comes back (issue 19 B8; docs/log.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set
from tests.interop.era2011 import kafka07
from tests.waiting import until

DATA = encode_set([b"x" * 100] * 15)
SMALL = {"log.file.size": 2000, "produce.acks.enable": True}
PATIENT = bool(os.environ.get("KAFKA07_RETENTION"))
"""0.7 deletes nothing before it is a minute old: that part is run by hand."""


def end_of(port: int) -> int:
    """Where the log ends; -1 while nobody answers."""
    try:
        with BrokerConnection("127.0.0.1", port, connect_timeout_s=0.5) as client:
            return client.offsets("t", 0)[0]
    except Kafka2011Error:
        return -1


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_directory_comes_back_from_a_real_07_broker(tmp_path: Path, ending: str) -> None:
    """It appends, rolls and (after a minute) deletes without writing anything down: nothing is missing, all is read."""
    kafka07.library()
    directory = tmp_path / "log07"
    with BrokerProcess(directory, SMALL) as ours:
        with BrokerConnection(ours.host, ours.port) as client:
            for _ in range(10):
                client.produce_acked("t", 0, DATA, AckLevel.FLUSHED)
        ours.stop()
        real, port = kafka07.broker(tmp_path, "log.file.size=2000", "log.retention.size=4000")
        try:
            until(lambda: end_of(port) == 10 * len(DATA), "0.7 has it")
            with BrokerConnection("127.0.0.1", port) as client:
                for _ in range(4):
                    client.produce("t", 0, DATA)
            until(lambda: end_of(port) == 14 * len(DATA), "0.7 has appended")
            if PATIENT:
                until(lambda: not (directory / "t-0" / f"{0:020d}.kafka").exists(), "0.7 has deleted", 150.0)
            real.leave() if ending == "stop" else real.kill()
        finally:
            real.close()
        ours.restart()
        assert ours.http("/healthz") == "ok\n"
        with BrokerConnection(ours.host, ours.port) as client:
            assert client.produce_acked("t", 0, DATA, AckLevel.FLUSHED)[0] == 14 * len(DATA)
        ours.stop()
        oldest = min((directory / "t-0").glob("*.kafka"))
        oldest.unlink()
        ours.restart()
        assert f"missing t-0/{oldest.name} is gone" in ours.http("/healthz")
