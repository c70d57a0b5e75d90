"""Reliability §4.2, rows N, M and T: whatever is sent, the broker lives, its memory is flat, others are served."""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import FetchRequest, MultiFetchRequest, OffsetsRequest, ProduceRequest, crc32, encode_set
from tests.integration.broker.client import RawClient
from tests.waiting import PATIENCE_S, until

HELLO = encode_set([b"hello"])
MiB = 1 << 20


@contextmanager
def unharmed(broker: BrokerProcess) -> Iterator[RawClient]:
    """Give a bystander's connection; afterwards it must be served, memory flat, nothing unforeseen counted."""
    process = psutil.Process(broker.pid)
    with RawClient(broker) as bystander:
        assert bystander.is_served()
        before = process.memory_info().rss
        yield bystander
        assert bystander.is_served()
        grown = process.memory_info().rss - before
    assert grown < 20 * MiB, f"{grown / MiB:.1f} MiB more than before"
    assert broker.state()["counters"]["handler_errors"] == 0


@pytest.fixture
def stored(broker: BrokerProcess, topic: str) -> str:
    """A topic with 3 MiB in it."""
    with RawClient(broker) as client:
        data = encode_set([b"x" * 990] * 1000)
        for _ in range(3):
            client.send(ProduceRequest(topic, 0, data).encode())
        client.wait_for(topic, 3 * len(data))
    return topic


@pytest.mark.parametrize("prefix", ["7fffffff", "80000000", "ffffffff", "00000000", "00000001"])
def test_n1_sizes_that_cannot_be(broker: BrokerProcess, prefix: str) -> None:
    """N1: an impossible size closes at once, before anything is allocated."""
    with unharmed(broker), RawClient(broker) as attacker:
        attacker.send(bytes.fromhex(prefix))
        assert attacker.is_closed()


def test_n2_silent_and_slow_clients_are_timed_out() -> None:
    """N2: sockets that say nothing, or half a request, are closed in time; new clients are served meanwhile."""
    options = {
        # Long enough for a bystander on a busy machine to speak after it connected.
        "connection.first.byte.ms": 3000,
        "connection.frame.ms": 1000,
        "max.connections.per.address": 40,
        "log.flush.interval": 1,
    }
    with BrokerProcess(options=options) as broker, unharmed(broker):
        silent = [RawClient(broker) for _ in range(30)]
        halves = [RawClient(broker) for _ in range(30)]
        for half in halves:
            try:
                half.send(struct.pack(">i", 1000) + b"\x00")
            except OSError:
                pass  # made room for a newer one already
        with RawClient(broker) as newcomer:
            assert newcomer.is_served()
        assert all(client.is_closed() for client in silent + halves)
        closed = broker.state()["counters"]["connections_closed"]
        assert closed.get("limit", 0) + closed["timeout"] == 60
        for client in silent + halves:
            client.close()


def test_n3_connections_come_and_go(broker: BrokerProcess) -> None:
    """N3: connections that close or reset at once leave no descriptor behind."""
    process = psutil.Process(broker.pid)
    with unharmed(broker):
        before = process.num_fds()
        for k in range(300):
            attacker = RawClient(broker)
            if k % 2:
                attacker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if k % 3 == 0:
                attacker.send(b"\x00\x00")
            attacker.close()
        until(lambda: process.num_fds() <= before, "no descriptor is left of 300 connections")


def test_n3_a_newcomer_takes_the_place_of_one_who_never_asked() -> None:
    """N3: at the connection limit those who never sent a request make room; those who did are kept."""
    with BrokerProcess(options={"max.connections": 10}) as broker:
        served = [RawClient(broker) for _ in range(6)]
        assert all(client.is_served() for client in served)
        idle = [RawClient(broker) for _ in range(20)]
        with RawClient(broker) as newcomer:
            assert newcomer.is_served()
        assert all(client.is_served() for client in served)
        for client in served + idle:
            client.close()


def test_n3_quiet_connections_of_three_addresses_shut_nobody_out() -> None:
    """Issue 19 B6: every place held by three addresses that asked once and sit still: both ports serve newcomers."""
    question = OffsetsRequest("t", 0, -1, 1).encode()
    versions = bytes.fromhex("0000000a0012000000000007ffff")
    with BrokerProcess(options={"max.connections": 30, "modern.port": 0}) as broker, ExitStack() as open_lines:

        def line(port: int, last: int) -> socket.socket:
            source = (f"127.0.0.{last}", 0)
            made = socket.create_connection((broker.host, port), PATIENCE_S, source_address=source)
            return open_lines.enter_context(made)

        for n in range(36):
            quiet = line(broker.port, 2 + n % 3)
            quiet.sendall(question)
            assert quiet.recv(4)
        assert broker.state()["connections"] >= 30
        for n in range(10):
            newcomer = line(broker.port, 10 + n)
            newcomer.sendall(question)
            assert newcomer.recv(4), "the 2011 port serves a newcomer"
            modern = line(broker.modern_port or 0, 30 + n)
            modern.sendall(versions)
            assert modern.recv(4), "the modern port serves a newcomer"


def test_n4_pipelined_fetches_never_read(broker: BrokerProcess, stored: str) -> None:
    """N4: a client that asks 2,000 times for 300 KB and reads nothing costs no memory and stops nobody."""
    with unharmed(broker) as bystander, RawClient(broker, receive_buffer=4096) as attacker:
        attacker.socket.setblocking(False)
        frames = FetchRequest(stored, 0, 0, 300 * 1024).encode() * 2000
        try:
            attacker.socket.send(frames)
        except BlockingIOError:
            pass
        counters = broker.state()["counters"]
        for _ in range(200):
            assert bystander.fetch(stored, 0, 100)[0] == 0
        assert broker.state()["counters"]["requests"]["fetch"] - counters["requests"]["fetch"] < 1000


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes.fromhex("1603010200010001fc0303") + b"\x00" * 500,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b'{"a": 1}\n' * 10,
        bytes(range(255, 0, -1)) * 20,
    ],
    ids=["http", "tls", "ssh", "json", "noise"],
)
def test_n5_strangers_protocols(broker: BrokerProcess, data: bytes) -> None:
    """N5: other protocols are closed."""
    with unharmed(broker), RawClient(broker) as attacker:
        attacker.send(data)
        assert attacker.is_closed()


def test_n5_a_flood_is_told_of_once_in_a_while(broker: BrokerProcess) -> None:
    """N5, L1: a flood of bad requests becomes a few log lines that carry the number left out."""
    lines = broker.output.count("connection_closed")
    with unharmed(broker):
        for _ in range(200):
            with RawClient(broker) as attacker:
                attacker.send(b"\xff\xff\xff\xff")
                assert attacker.is_closed()
    assert broker.output.count("connection_closed") - lines < 100


def test_n6_values_at_the_edges(broker: BrokerProcess, stored: str) -> None:
    """N6: extreme keys, lengths, partitions, offsets and sizes give an error code or a close."""
    name = struct.pack(">h", len(stored)) + stored.encode()
    bodies = [struct.pack(">h", key) + name for key in (-1, 5, 32767, 0, 1, 2, 3, 4, 100)]
    bodies += [struct.pack(">hh", key, size) + b"x" * 20 for key in (0, 1, 4) for size in (-1, 0, 32767)]
    bodies += [
        struct.pack(">h", 1) + name + struct.pack(">iqi", partition, offset, size)
        for partition in (-1, 0, 2**31 - 1)
        for offset in (-1, 0, 2**63 - 1, -(2**63))
        for size in (0, -1, 10)
    ]
    with unharmed(broker):
        for body in bodies:
            with RawClient(broker) as attacker:
                attacker.send(struct.pack(">i", len(body)) + body)
                attacker.socket.shutdown(socket.SHUT_WR)
                try:
                    answer = attacker.socket.recv(6)
                except ConnectionResetError:
                    answer = b""
                assert len(answer) in (0, 6), body.hex()


def test_n6_the_largest_multifetch(broker: BrokerProcess, stored: str) -> None:
    """N6: a multi-fetch of 32,767 entries is answered in order without memory or descriptors running out."""
    with unharmed(broker), RawClient(broker) as attacker:
        attacker.send(MultiFetchRequest((FetchRequest(stored, 0, 0, 50),) * 32767).encode())
        (size,) = struct.unpack(">i", attacker.receive(4))
        reply = attacker.receive(size)
        pos, n, full = 2, 0, 0
        while pos < len(reply):
            one, code = struct.unpack_from(">ih", reply, pos)
            assert (code, one) in ((0, 2), (0, 52))
            full += one == 52
            pos, n = pos + 4 + one, n + 1
        assert (n, pos) == (32767, len(reply))
        assert full >= 512


def refused(broker: BrokerProcess, topic: str, data: bytes) -> None:
    """Send ``data`` and expect a close with nothing appended."""
    with unharmed(broker) as bystander, RawClient(broker) as attacker:
        attacker.send(ProduceRequest(topic, 0, data).encode())
        assert attacker.is_closed()
        assert bystander.offsets(topic) == [0]


def wrapper(payload: bytes, attributes: int = 1) -> bytes:
    return struct.pack(">iBBI", 6 + len(payload), 1, attributes, crc32(payload)) + payload


@pytest.mark.parametrize("position", [4, 6, 9, 10, 14])
def test_m2_one_bit_wrong(broker: BrokerProcess, topic: str, position: int) -> None:
    """M2: a flipped bit in magic, CRC or payload refuses the set."""
    bad = bytearray(HELLO)
    bad[position] ^= 2
    refused(broker, topic, bytes(bad))


BOMB = gzip.compress(encode_set([bytes(1 << 19)] * 64), 9)


@pytest.mark.parametrize(
    "payload",
    [
        BOMB,
        gzip.compress(wrapper(BOMB), 9),
        BOMB[:-20],
        gzip.compress(HELLO) + b"trailing",
        b"\x1f\x8b\x08",
        b"",
        gzip.compress(HELLO[:-1]),
        gzip.compress(encode_set([b""] * 600_000), 1),
    ],
    ids=["bomb", "bomb in bomb", "cut", "trailing", "header only", "no bytes", "cut inside", "a million nothings"],
)
def test_m3_compression_bombs(broker: BrokerProcess, topic: str, payload: bytes) -> None:
    """M3: bombs, cut or padded wrappers and floods of empty messages inside one are refused."""
    refused(broker, topic, wrapper(payload))


def test_m5_a_request_full_of_empty_messages(broker: BrokerProcess, topic: str) -> None:
    """M5: a megabyte of empty messages is taken or refused, quickly and without memory."""
    with unharmed(broker) as bystander, RawClient(broker) as attacker:
        attacker.send(ProduceRequest(topic, 0, encode_set([b""] * 100_000)).encode())
        bystander.wait_for(topic, 1_000_000)


@pytest.mark.parametrize(
    "name",
    ["..", ".", "../../x", "a/b", "/etc/x", "a\0b", "a\nINFO fake", "…", "a" * 201, "a%2fb", "é", "e\u0301",
     "<img src=x onerror=alert(1)>", "{{7*7}}", "=cmd()", "$(id)", "%n%n", ""],
)  # fmt: skip
def test_t1_t2_names_that_could_do_harm(broker: BrokerProcess, name: str) -> None:
    """T1, T2: a name that could leave the directory or be taken for code is refused and never becomes a file."""
    before = sorted(path.name for path in broker.log_dir.iterdir())
    with unharmed(broker):
        with RawClient(broker) as attacker:
            attacker.send(ProduceRequest(name, 0, HELLO).encode())
            assert attacker.is_closed()
        with RawClient(broker) as attacker:
            assert attacker.fetch(name)[0] == -1
            attacker.send(OffsetsRequest(name, 0, -1, 1).encode())
            assert attacker.is_closed()
    assert sorted(path.name for path in broker.log_dir.iterdir()) == before


def test_t1_names_that_look_alike_have_their_own_directories(broker: BrokerProcess, client: RawClient) -> None:
    """T1: x-0 with partition 1 and x with partition 0 never share a directory; odd but legal names work."""
    for name in ("x-0", "x", "CON", "__offsets", ".lock", "a-1-2"):
        client.produce(name, name.encode(), partition=1)
    for name in ("x-0", "x", "CON", "__offsets", ".lock", "a-1-2"):
        client.wait_for(name, 10 + len(name), partition=1)
        assert client.fetch(name, partition=1) == (0, encode_set([name.encode()]))
        assert client.fetch(name, partition=0) == (0, b"")


def test_t4_topics_without_end() -> None:
    """T4: creation stops at max.topics; sets for more are dropped and counted, existing topics are served."""
    with BrokerProcess(options={"max.topics": 5, "log.flush.interval": 1}) as broker, unharmed(broker) as client:
        for k in range(50):
            client.produce(f"t{k}", b"hello")
        client.wait_for("t4", 15)
        until(lambda: broker.state()["counters"]["dropped_sets"].get("TooManyTopics") == 45, "45 are dropped")
        assert len(broker.state()["topics"]) == 5


def test_half_received_requests_share_one_budget() -> None:
    """§4.1: when half-received requests fill the budget all but the oldest wait, and every one still gets through."""
    options = {"max.frames.in.flight.bytes": 300_000, "log.flush.interval": 1, "num.partitions": 8}
    data = encode_set([b"x" * 190] * 1000)
    with BrokerProcess(options=options) as broker, unharmed(broker):
        clients = [RawClient(broker) for _ in range(8)]
        frames = [ProduceRequest("t", k, data).encode() for k in range(8)]
        for client, frame in zip(clients, frames, strict=True):
            client.send(frame[:150_000])
        for client, frame in reversed(list(zip(clients, frames, strict=True))):
            client.send(frame[150_000:])
        with RawClient(broker) as reader:
            for k in range(8):
                reader.wait_for("t", len(data), partition=k)
        for client in clients:
            client.close()
