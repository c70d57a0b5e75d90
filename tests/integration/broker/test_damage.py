"""A damaged partition from the crash to the repair, behind a real broker, seen by clients and by the operator.

Paper: §3.3. Promises: docs/log.md (Starting; To bring an offline partition back).
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import LogCorrupt, UnknownError
from kafka2011.testing import BrokerProcess
from kafka2011.wire import (
    AckLevel,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    decode_set,
    encode_set,
)
from tests.integration.broker.client import RawClient
from tests.waiting import until

ENTRY = 12
"""Bytes of each message: two of payload."""
N_MESSAGES = 40
BAD = 37
"""The damaged message: 444 … 456, in the third segment (408 … 480), with two intact ones after it."""
CORRUPT = f"{408:020d}.kafka.corrupt"
OPTIONS = {"log.flush.interval": 1, "num.partitions": 2, "log.file.size": 200, "produce.acks.enable": True}


def payload(number: int) -> bytes:
    return b"%02d" % number


def kafka2011(*words: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "kafka2011", *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False)


def read_all(client: RawClient, partition: int = 0) -> list[bytes]:
    """Every message of a partition, from segment to segment."""
    found, offset, end = [], 0, client.offsets("t", partition=partition)[0]
    while offset < end:
        code, data = client.fetch("t", offset, partition=partition)
        assert code == 0
        found += [message.payload for message in decode_set(data)]
        offset += len(data)
    return found


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that crashed, and whose partition t-0 lost a bit on the disk before it was started again."""
    with BrokerProcess(tmp_path / "data", OPTIONS) as broker:
        with RawClient(broker) as client:
            for number in range(N_MESSAGES):
                client.produce("t", payload(number))
                client.produce("t", payload(number), partition=1)
            client.wait_for("t", N_MESSAGES * ENTRY)
            client.wait_for("t", N_MESSAGES * ENTRY, partition=1)
            assert client.offsets("t", -1, 9) == [480, 408, 204, 0]
        broker.kill()
        # As if the crash had come before the last recovery points were written: the start trusts nothing.
        (broker.log_dir / ".kafka2011_recovery_points").write_bytes(b"")
        segment = broker.log_dir / "t-0" / CORRUPT.removesuffix(".corrupt")
        data = bytearray(segment.read_bytes())
        data[BAD * ENTRY - 408 + 11] ^= 1
        segment.write_bytes(data)
        broker.restart()
        yield broker


def test_clients_of_a_damaged_partition_are_told_and_others_served(damaged: BrokerProcess) -> None:
    """Damage in the middle takes one partition offline: its requests fail by name, the others' work (§3.3)."""
    with RawClient(damaged) as client:
        assert client.fetch("t", 0) == (-1, b"")
        assert client.fetch("t", 480) == (-1, b"")
        for time_ms in (-1, -2, 10**13):
            assert client.ask(OffsetsRequest("t", 0, time_ms, 9).encode()) == struct.pack(">hi", -1, 0)
        both = MultiFetchRequest((FetchRequest("t", 0, 0, 1000), FetchRequest("t", 1, 0, ENTRY)))
        part = struct.pack(">ih", 2 + ENTRY, 0) + encode_set([payload(0)])
        assert client.ask(both.encode()) == struct.pack(">h", 0) + struct.pack(">ih", 2, -1) + part

        client.produce("t", b"no")
        sub = tuple(ProduceRequest("t", p, encode_set([b"40"])) for p in (0, 1))
        client.send(MultiProduceRequest(sub).encode())
        client.wait_for("t", 41 * ENTRY, partition=1)
        assert read_all(client, 1) == [payload(n) for n in range(41)]
        assert client.is_served()
    counters = damaged.state()["counters"]
    assert counters["dropped_sets"] == {"LogCorrupt": 2}
    assert (counters["connections_closed"], counters["handler_errors"]) == ({}, 0)


def test_our_own_clients_say_what_is_wrong(damaged: BrokerProcess) -> None:
    """The product's client and commands name the partition and where to look, not a lost connection (§3.3)."""
    with BrokerConnection(damaged.host, damaged.port) as connection:
        with pytest.raises(UnknownError, match=r"t-0: the broker answered error -1; its log says why"):
            connection.fetch("t", 0, 0)
        with pytest.raises(UnknownError, match="error -1; its log says why"):
            connection.offsets("t", 0)
        with pytest.raises(LogCorrupt, match="nothing was appended"):
            connection.produce_acked("t", 0, encode_set([b"xx"]), AckLevel.FLUSHED)
        assert connection.connected
    done = kafka2011("fetch", "t", "-e", "-b", damaged.address)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (1, b"")
    assert line.startswith(f"kafka2011: t-0 on {damaged.address}: ")
    assert "topics describe --admin" in line


def test_a_broker_that_may_choose_chooses_a_healthy_partition(damaged: BrokerProcess) -> None:
    """A produce to partition -1 never goes to the damaged one while there is another (§3.5 of the spec)."""
    with RawClient(damaged) as client:
        for number in range(40):
            client.produce("t", payload(number), partition=-1)
        client.wait_for("t", 80 * ENTRY, partition=1)
    assert damaged.state()["counters"]["dropped_sets"] == {}


def test_the_operator_is_told_everywhere(damaged: BrokerProcess) -> None:
    """State, health, metrics, events, the log and `topics` name the partition, the offsets and the next step (§3.3)."""
    corrupt = damaged.log_dir / "t-0" / CORRUPT
    state = damaged.state()
    assert list(state["topics"]["t"]["partitions"]) == ["1"]
    reason = state["offline"]["t-0"]
    assert "damage at offset 444, followed by intact messages" in reason
    assert str(corrupt) in reason
    assert "kafka2011 log salvage" in reason
    assert damaged.http("/healthz") == "ok\noffline t-0\n"
    with RawClient(damaged) as client:
        client.fetch("t")
    metrics = damaged.http("/metrics").splitlines()
    assert "kafka2011_broker_offline_partitions 1.0" in metrics
    assert 'kafka2011_broker_topic_failed_fetches_total{topic="t"} 1.0' in metrics
    events = {event["event"]: event for event in json.loads(damaged.http("/events?once=1"))}
    quarantined = events["segment_quarantined"]
    assert [quarantined[name] for name in ("topic", "partition", "start", "end", "policy", "path")] == [
        "t", 0, 444, 480, "offline", str(corrupt),
    ]  # fmt: skip
    assert events["partition_offline"]["reason"] == reason
    assert "ERROR partition_offline topic=t partition=0" in damaged.output
    for source in (("--admin", f"127.0.0.1:{damaged.admin_port}"), ("--log-dir", damaged.log_dir)):
        done = kafka2011("topics", "describe", "t", *source)
        assert done.stdout.splitlines()[1].split() == [b"t", b"0", b"-", b"-", b"-", b"0", b"0"]
        assert f"t-0 is not served: {'damage' if source[0] == '--admin' else corrupt}" in done.stderr.decode()
        assert json.loads(kafka2011("topics", "describe", "--json", *source).stdout)[1]["offline"] is None


def test_salvage_and_a_restart_bring_it_back(damaged: BrokerProcess, tmp_path: Path) -> None:
    """verify finds it, salvage gets every other message out, policy truncate goes on before the damage (§3.3)."""
    partition = damaged.log_dir / "t-0"
    corrupt = (partition / CORRUPT).read_bytes()
    verified = kafka2011("log", "verify", partition, "--json")
    assert verified.returncode == 1
    assert [row["verdict"] for row in json.loads(verified.stdout)] == ["intact", "intact", "damage at 444, 12 bytes"]

    salvaged = kafka2011("log", "salvage", partition, "--lines", "-o", tmp_path / "messages")
    kept = [payload(n) for n in range(N_MESSAGES) if n != BAD]
    assert salvaged.returncode == 0
    assert b"damage at offset 444, 12 bytes" in salvaged.stderr
    assert (tmp_path / "messages").read_bytes().split() == kept

    damaged.options["log.corrupt.policy"] = "truncate"
    damaged.stop()
    damaged.restart()
    with RawClient(damaged) as client:
        assert client.offsets("t", -1, 9) == [444, 408, 204, 0]
        assert read_all(client) == [payload(n) for n in range(BAD)]
        assert client.fetch("t", 480) == (1, b"")
    assert (partition / CORRUPT).read_bytes() == corrupt
    assert (damaged.state()["offline"], damaged.http("/healthz")) == ({}, "ok\n")

    # What came after the damage is sent again; it lands at new offsets. The damaged file is no reason to stop any more.
    (tmp_path / "after").write_bytes(b"".join(line + b"\n" for line in kept[BAD:]))
    words = ("-p", "0", "-b", damaged.address, "--acks", "flushed", "--file", tmp_path / "after")
    sent = kafka2011("produce", "t", *words)
    assert sent.returncode == 0, sent.stderr
    del damaged.options["log.corrupt.policy"]
    damaged.stop()
    damaged.restart()
    with RawClient(damaged) as client:
        assert read_all(client) == kept
        assert client.offsets("t") == [(N_MESSAGES - 1) * ENTRY]
    assert damaged.state()["offline"] == {}
    assert kafka2011("log", "verify", partition).returncode == 0


def test_a_damaged_partition_stays_offline_until_somebody_acts(damaged: BrokerProcess) -> None:
    """Restarts neither lose nor hide it; a good copy of the file put back makes everything as before (§3.3)."""
    corrupt = damaged.log_dir / "t-0" / CORRUPT
    before = corrupt.read_bytes()
    for end in (damaged.stop, damaged.kill):
        end()
        damaged.restart()
        until(lambda: "t-0" in damaged.state()["offline"], "it is offline again")
        assert "kafka2011 log salvage" in damaged.state()["offline"]["t-0"]
        with RawClient(damaged) as client:
            assert read_all(client, 1) == [payload(n) for n in range(N_MESSAGES)]
    assert corrupt.read_bytes() == before

    good = bytearray(before)
    good[BAD * ENTRY - 408 + 11] ^= 1
    corrupt.with_suffix("").write_bytes(good)
    damaged.restart()
    with RawClient(damaged) as client:
        assert read_all(client) == [payload(n) for n in range(N_MESSAGES)]
