"""Fetches of real segment files by real readers: fast, slow, many at once, over TLS."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import FetchRequest, MultiFetchRequest, ProduceRequest, encode_set
from tests.certificates import issue
from tests.integration.broker.client import RawClient
from tests.waiting import PATIENCE_S, until

SEGMENT = 2_000_000


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[BrokerProcess, bytes]]:
    """A broker with 8 MB of random messages in topic ``t``, over several segments, and those bytes."""
    options = {"log.flush.interval": 1000, "log.file.size": SEGMENT, "num.partitions": 2}
    with BrokerProcess(options=options) as broker, RawClient(broker) as client:
        sets = [encode_set([os.urandom(1000) for _ in range(100)]) for _ in range(80)]
        for one in sets:
            client.send(ProduceRequest("t", 0, one).encode())
        data = b"".join(sets)
        client.wait_for("t", len(data))
        yield broker, data


def read_through(client: RawClient, size: int, fetch_size: int) -> bytes:
    """All bytes of the topic by successive fetches."""
    data = b""
    while len(data) < size:
        code, piece = client.fetch("t", len(data), fetch_size)
        assert code == 0 and 0 < len(piece) <= fetch_size
        data += piece
    return data


@pytest.mark.parametrize("fetch_size", [100_000, 5_000_000])
def test_what_is_fetched_is_what_is_in_the_files(filled: tuple[BrokerProcess, bytes], fetch_size: int) -> None:
    """Fetch after fetch the whole log comes back byte for byte, no fetch crossing a segment, all by sendfile (§3.1)."""
    broker, data = filled
    with RawClient(broker) as client:
        before = broker.state()["counters"]["fetched_bytes"].get("sendfile", 0)
        assert hashlib.sha256(read_through(client, len(data), fetch_size)).digest() == hashlib.sha256(data).digest()
        counters = broker.state()["counters"]["fetched_bytes"]
    segments = broker.state()["topics"]["t"]["partitions"]["0"]["segments"]
    assert len(segments) > 3
    assert counters == {"sendfile": before + len(data)}
    with RawClient(broker) as client:
        assert len(client.fetch("t", 0, len(data))[1]) == segments[1]["start"]


def test_a_slow_reader_of_pipelined_fetches_gets_every_byte_in_order(filled: tuple[BrokerProcess, bytes]) -> None:
    """Heads and bodies of pipelined fetches never mix, however small the pieces the reader takes (§3.1)."""
    broker, data = filled
    with RawClient(broker, receive_buffer=4096) as slow, RawClient(broker) as other:
        ranges = [(k * 10_007 % 1_500_000, 60_000 + k) for k in range(40)]
        slow.send(*(FetchRequest("t", 0, offset, size).encode() for offset, size in ranges))
        expected = hashlib.sha256()
        total = 0
        for offset, size in ranges:
            piece = data[offset : offset + size]
            expected.update(struct.pack(">ih", 2 + len(piece), 0) + piece)
            total += 6 + len(piece)
        found = hashlib.sha256()
        taken = 0
        while taken < total:
            piece = slow.socket.recv(min(3000, total - taken))
            assert piece
            found.update(piece)
            taken += len(piece)
            if taken % 7 == 0:
                assert other.fetch("t", 0, 10) == (0, data[:10])
        assert found.digest() == expected.digest()
        assert slow.is_served()


def test_a_multifetch_is_sent_from_several_files(filled: tuple[BrokerProcess, bytes]) -> None:
    """One multi-fetch may take ranges of several segments; heads stand between them where they belong (§3.3)."""
    broker, data = filled
    starts = [s["start"] for s in broker.state()["topics"]["t"]["partitions"]["0"]["segments"]]
    fetches = (*(FetchRequest("t", 0, start, 300_000) for start in starts), FetchRequest("t", 0, -5, 10))
    with RawClient(broker) as client:
        reply = client.ask(MultiFetchRequest(fetches).encode())

    parts = [data[start : start + 300_000] for start in starts]
    ends = [*starts[1:], len(data)]
    parts = [part[: end - start] for part, start, end in zip(parts, starts, ends, strict=True)]
    body = b"".join(struct.pack(">ih", 2 + len(part), 0) + part for part in parts) + struct.pack(">ih", 2, 1)
    assert reply == b"\x00\x00" + body


def test_a_small_answer_arrives_in_one_piece(filled: tuple[BrokerProcess, bytes]) -> None:
    """Head and body of a small answer are one packet: a reader that takes what is there has all of it.

    See docs/paper-vs-code.md.
    """
    broker, data = filled
    in_one_piece = 0
    with RawClient(broker) as client:
        for offset in range(50):
            client.send(FetchRequest("t", 0, offset, 5000).encode())
            first = client.socket.recv(5006)
            in_one_piece += len(first) == 5006
            answer = first + client.receive(5006 - len(first))
            assert answer == struct.pack(">ih", 5002, 0) + data[offset : offset + 5000]
    # The kernel lets go of a waiting head after 200 ms: possible if the broker is not scheduled for so long.
    assert in_one_piece >= 40


def test_a_reader_that_leaves_in_the_middle_costs_nothing(filled: tuple[BrokerProcess, bytes]) -> None:
    """Connections lost in mid-answer leave no descriptor behind and the broker serves on."""
    import psutil

    broker, _ = filled
    process = psutil.Process(broker.pid)
    with RawClient(broker) as bystander:
        assert bystander.is_served()
        before = process.num_fds()
        for k in range(20):
            leaver = RawClient(broker, receive_buffer=4096)
            leaver.send(FetchRequest("t", 0, 0, 1_900_000).encode() * 5)
            leaver.receive(1 + k)
            leaver.close()
        until(lambda: process.num_fds() <= before, "every file and socket is closed")
        assert bystander.is_served()


def test_a_segment_deleted_while_it_is_sent_still_arrives(tmp_path: Path) -> None:
    """Retention may unlink a segment in the middle of an answer: the reader still gets every byte announced (§3.1)."""
    with BrokerProcess(tmp_path / "data", {"log.flush.interval": 1}) as broker, RawClient(broker) as client:
        data = encode_set([os.urandom(1000) for _ in range(3000)])
        client.send(ProduceRequest("t", 0, data).encode())
        client.wait_for("t", len(data))
        with RawClient(broker, receive_buffer=4096) as slow:
            slow.send(FetchRequest("t", 0, 0, len(data)).encode())
            head = slow.receive(6)
            (tmp_path / "data" / "t-0" / f"{0:020d}.kafka").unlink()
            assert head == struct.pack(">ih", len(data) + 2, 0)
            assert slow.receive(len(data)) == data


def test_the_same_bytes_over_tls(tmp_path: Path) -> None:
    """With a certificate the port speaks TLS: same requests, same bytes, copied instead of sent by the kernel."""
    certificate, key = issue("broker").write(tmp_path, "broker")
    options = {"tls.certificate": certificate, "tls.key": key, "log.flush.interval": 1}
    with BrokerProcess(options=options) as broker:
        context = ssl.create_default_context(cafile=str(certificate))
        client = RawClient.__new__(RawClient)
        plain = socket.create_connection((broker.host, broker.port), PATIENCE_S)
        client.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        data = encode_set([os.urandom(900) for _ in range(2000)])
        client.send(ProduceRequest("t", 0, data).encode())
        client.wait_for("t", len(data))
        frames = [FetchRequest("t", 0, offset, 500_000).encode() for offset in (0, 7, 100_000)]
        client.send(*frames)

        for offset in (0, 7, 100_000):
            piece = data[offset : offset + 500_000]
            assert client.receive(6 + len(piece)) == struct.pack(">ih", 2 + len(piece), 0) + piece
        assert broker.state()["counters"]["fetched_bytes"] == {"copy": 1_500_000}
        client.close()
        with RawClient(broker) as stranger:
            stranger.send(frames[0])
            assert stranger.socket.recv(6) != struct.pack(">ih", 500_002, 0)
