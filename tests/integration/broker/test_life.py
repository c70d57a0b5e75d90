"""Start, crash, slow disks, full disks, stop: a broker process from outside."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from kafka2011.cli.main import kafka2011
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckedProduceRequest, AckLevel, FetchRequest, ProduceRequest, decode_set, encode_set
from tests.integration.broker.client import RawClient
from tests.waiting import until

MARKER = ".kafka_cleanshutdown"
EVERY = {"log.flush.interval": 1}
NEVER = {"log.flush.interval": 1_000_000, "log.default.flush.interval.ms": 86_400_000}


def acked(client: RawClient, topic: str, payload: bytes, level: int, partition: int = 0) -> tuple[int, int, int]:
    """Error code, first and next offset of an acknowledged produce."""
    request = AckedProduceRequest(AckLevel(level), ProduceRequest(topic, partition, encode_set([payload])))
    code, first, end = struct.unpack(">hqq", client.ask(request.encode()))
    return code, first, end


def payloads(client: RawClient, topic: str) -> list[bytes]:
    """Every message consumers can read."""
    end = client.offsets(topic)[0]
    data = b""
    while len(data) < end:
        data += client.fetch(topic, len(data))[1]
    return [message.payload for message in decode_set(data)]


def test_kill_loses_nothing_flushed(tmp_path: Path) -> None:
    """After kill -9 every message acknowledged as flushed, and everything a consumer saw, is there (§3.1, §3.3)."""
    options = EVERY | {"produce.acks.enable": True}
    with BrokerProcess(tmp_path / "data", options) as broker:
        seen: list[bytes] = []
        for life in range(2):
            with RawClient(broker) as client:
                for k in range(20):
                    payload = f"{life}-{k}".encode()
                    code, first, end = acked(client, "t", payload, 2)
                    assert (code, end - first) == (0, 10 + len(payload))
                    seen.append(payload)
            broker.kill()
            broker.restart()
            with RawClient(broker) as client:
                assert payloads(client, "t") == seen


def test_acknowledgements_say_where_a_set_lies(tmp_path: Path) -> None:
    """Level 1 answers after the append, before anybody can read it; level 2 when it can be read (extension)."""
    with BrokerProcess(tmp_path / "data", NEVER | {"produce.acks.enable": True}) as broker, RawClient(broker) as client:
        assert acked(client, "t", b"hello", 1) == (0, 0, 15)
        assert client.offsets("t") == [0]
        assert acked(client, "t", b"there", 2) == (0, 15, 30)
        assert client.offsets("t") == [30]
        assert acked(client, "a/b", b"x", 1)[0] == 104
        assert acked(client, "t", b"x", 1, partition=9)[0] == 3
        assert acked(client, "t", b"x" * 1_000_001, 1)[0] == 103
        assert client.is_served()


def test_acknowledgements_are_off_unless_asked_for() -> None:
    """Without produce.acks.enable request 100 is as unknown as in 2011: the connection closes."""
    with BrokerProcess() as broker, RawClient(broker) as client:
        client.send(AckedProduceRequest(AckLevel.APPENDED, ProduceRequest("t", 0, encode_set([b"x"]))).encode())
        assert client.is_closed()
        assert broker.state()["topics"] == {}


def test_a_clean_stop_leaves_the_marker_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGTERM flushes, leaves the marker, exits 0; after a restart data and next offset are as before (§11)."""
    data = tmp_path / "data"
    with BrokerProcess(data, NEVER) as broker:
        with RawClient(broker) as client:
            client.produce("t", b"hello")
            until(lambda: broker.state()["topics"]["t"]["partitions"]["0"]["end_offset"] == 15, "it is appended")
            assert client.fetch("t") == (0, b"")
            assert broker.stop() == 0
        assert (data / MARKER).exists()
        broker.restart()
        assert not (data / MARKER).exists()
        with RawClient(broker) as client:
            assert payloads(client, "t") == [b"hello"]
            client.produce("t", b"there")
            until(lambda: broker.state()["topics"]["t"]["partitions"]["0"]["end_offset"] == 30, "it goes on at 15")


def test_a_stop_does_not_wait_for_stuck_clients(tmp_path: Path) -> None:
    """SIGTERM ends the broker cleanly though clients hold half requests and unread answers."""
    with BrokerProcess(tmp_path / "data", EVERY) as broker:
        with RawClient(broker) as writer:
            data = encode_set([b"x" * 1000] * 2000)
            writer.send(ProduceRequest("t", 0, data).encode())
            writer.wait_for("t", len(data))
        stuck = [RawClient(broker, receive_buffer=4096) for _ in range(5)]
        for client in stuck:
            client.send(FetchRequest("t", 0, 0, 2_000_000).encode() * 50)
        halves = [RawClient(broker) for _ in range(5)]
        for client in halves:
            client.send(b"\x00\x00\x10\x00half")

        assert broker.stop() == 0
        assert (tmp_path / "data" / MARKER).exists()
        for client in stuck + halves:
            client.close()


def test_a_hanging_sync_stops_nobody_else(tmp_path: Path) -> None:
    """While one sync hangs, fetches, other partitions and their flushes go on; its bytes stay invisible (§2.3)."""
    hang = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=sleep:3600@2"}
    options = EVERY | {"shutdown.timeout.ms": 300, "num.partitions": 3}
    with BrokerProcess(tmp_path / "data", options, environ=hang) as broker:
        with RawClient(broker) as client:
            client.produce("t", b"hello")
            client.wait_for("t", 15)
            client.produce("t", b"stuck")
            until(lambda: broker.state()["topics"]["t"]["partitions"]["0"]["end_offset"] == 30, "it is appended")
            for k in range(20):
                client.produce("t", b"other", partition=1 + k % 2)
                client.wait_for("t", 15 * (k // 2 + 1), partition=1 + k % 2)
                assert client.fetch("t") == (0, encode_set([b"hello"]))
            assert client.offsets("t") == [15]
            assert client.fetch("t", 30) == (1, b"")
        assert broker.stop() == 1
        assert not (tmp_path / "data" / MARKER).exists()
        broker.environ.clear()
        broker.restart()
        with RawClient(broker) as client:
            assert payloads(client, "t") == [b"hello", b"stuck"]


def test_making_a_topic_stops_nobody(tmp_path: Path) -> None:
    """While the directory of a new topic is being synced, all others are served, and further topics made (§3.1)."""
    hang = {"KAFKA2011_FAILPOINTS": "log.flush.before_directory_sync=sleep:3600@3"}
    with BrokerProcess(tmp_path / "data", EVERY, environ=hang) as broker:
        with RawClient(broker) as maker, RawClient(broker) as client:
            client.produce("old", b"hello")
            client.wait_for("old", 15)
            maker.produce("new", b"stuck")
            until(lambda: broker.state()["topics"]["new"]["partitions"]["0"]["end_offset"] == 15, "it is made")
            for k in range(20):
                assert client.fetch("old") == (0, encode_set([b"hello"] * (k + 1)))
                assert maker.fetch("new") == (0, b"")
                client.produce("old", b"hello")
                client.wait_for("old", 15 * (k + 2))
            client.produce("newer", b"hello")
            client.wait_for("newer", 15)
            assert maker.offsets("new") == [0]
        broker.kill()
        broker.environ.clear()
        broker.restart()
        with RawClient(broker) as client:
            assert [payloads(client, topic) for topic in ("new", "newer")] == [[b"stuck"], [b"hello"]]


def test_a_failed_sync_takes_one_partition_out(tmp_path: Path) -> None:
    """After fsync failed its partition takes no more, says so, and never shows the bytes; others go on (§2.3)."""
    failing = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=raise:EIO@2"}
    options = EVERY | {"num.partitions": 2, "produce.acks.enable": True}
    with BrokerProcess(tmp_path / "data", options, environ=failing) as broker, RawClient(broker) as client:
        assert acked(client, "t", b"hello", 2) == (0, 0, 15)
        assert acked(client, "t", b"gone?", 2)[0] == 105, "appended, then the disk failed"
        assert acked(client, "t", b"more", 1)[0] == 101
        client.produce("t", b"unanswered")
        until(lambda: broker.state()["counters"]["dropped_sets"].get("LogFailed") == 1, "the set is counted")
        assert acked(client, "t", b"other", 2, partition=1) == (0, 0, 15)
        assert client.fetch("t") == (0, encode_set([b"hello"]))
        assert client.offsets("t") == [15]
        assert broker.state()["counters"]["flush_failures"] == 1
        assert "disk_failed topic=t partition=0" in broker.output


def test_a_full_disk_refuses_and_recovers_without_a_restart(tmp_path: Path) -> None:
    """Without space a set is dropped whole and counted, reading goes on, and the next one that fits is taken (§2.3)."""
    full = {"KAFKA2011_FAILPOINTS": "log.append.before_write=raise:ENOSPC@2"}
    with BrokerProcess(tmp_path / "data", EVERY, environ=full) as broker, RawClient(broker) as client:
        client.produce("t", b"hello")
        client.wait_for("t", 15)
        client.produce("t", b"no room")
        until(lambda: broker.state()["counters"]["dropped_sets"].get("LogFull") == 1, "the set is counted")
        assert client.fetch("t") == (0, encode_set([b"hello"]))
        client.produce("t", b"there")
        client.wait_for("t", 30)
        assert payloads(client, "t") == [b"hello", b"there"]


def test_segments_roll_as_if_sets_came_one_by_one(tmp_path: Path) -> None:
    """Sets gathered from one read land in the segments 0.7 would have put them in: 0, 108, 216 (docs/log.md)."""
    with BrokerProcess(tmp_path / "data", EVERY | {"log.file.size": 100}) as broker, RawClient(broker) as client:
        client.send(*(ProduceRequest("t", 0, encode_set([b"xx"])).encode() for _ in range(20)))
        client.wait_for("t", 240)

        assert client.offsets("t", -1, 10) == [240, 216, 108, 0]
        assert client.offsets("t", -2, 10) == [0]
        assert client.offsets("t", -1, 2) == [240, 216]


def test_a_log_written_before_0_7_is_readable(tmp_path: Path) -> None:
    """A stored magic-0 log of 100 messages, byte for byte a pre-0.7 broker's, is served as it is.

    See docs/paper-vs-code.md, D1.
    """
    segment = encode_set([b"x" * 100] * 100, magic=0)
    assert hashlib.sha256(segment).hexdigest() == "0db77e65c9cbe560e47d45e6dd43b8e61adf0c0e39c6ed9fe16890ef8d109625"
    directory = tmp_path / "data" / "test-topic-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.kafka").write_bytes(segment)
    with BrokerProcess(tmp_path / "data", EVERY) as broker, RawClient(broker) as client:
        assert client.offsets("test-topic") == [10_900]
        assert client.fetch("test-topic") == (0, segment)
        client.produce("test-topic", b"new")
        client.wait_for("test-topic", 10_913)
        assert payloads(client, "test-topic") == [b"x" * 100] * 100 + [b"new"]


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka2011", "broker", "start", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=os.environ | {})


def test_what_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    """A used port, a locked directory and one that cannot be each end with exit code 1 and one clear line."""
    with BrokerProcess(tmp_path / "a") as broker:
        used = start("--log-dir", str(tmp_path / "b"), "--port", str(broker.port))
        locked = start("--log-dir", str(tmp_path / "a"), "--port", "0")
    (tmp_path / "file").write_text("")
    wrong = start("--log-dir", str(tmp_path / "file"), "--port", "0")

    expected = [
        (used, f"cannot listen on 127.0.0.1:{broker.port}"),
        (locked, str(tmp_path / "a")),
        (wrong, f"cannot use log.dir {tmp_path / 'file'}"),
    ]
    for done, words in expected:
        lines = [line for line in done.stderr.splitlines() if line.startswith("kafka2011: ")]
        assert (done.returncode, len(lines)) == (1, 1), done.stderr
        assert words in lines[0]
        assert "Traceback" not in done.stderr


def test_topics_are_described_from_a_running_broker(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """kafka2011 topics describe --admin shows first, flushed and end offset, size and segments of a broker."""
    client.produce(topic, b"hello")
    client.wait_for(topic, 15)

    done = CliRunner().invoke(kafka2011, ["topics", "describe", topic, "--admin", f"127.0.0.1:{broker.admin_port}"])

    assert done.output.splitlines()[1].split() == [topic, "0", "0", "15", "15", "15", "1"]
