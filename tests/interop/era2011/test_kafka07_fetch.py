"""A fetch that asks for less than nothing, at the real broker of Kafka 0.7 and at ours."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from tests.interop.era2011 import kafka07
from tests.waiting import until


def asked(port: int, size: int) -> tuple[bytes, bool]:
    """The bytes that answer a fetch of ``size``, and whether the connection is still good for another."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as answers:
        line.sendall(_fetch(size))
        first = answers.read(6)
        try:
            line.sendall(_fetch(100))
            return first, len(answers.read(6)) == 6
        except OSError:
            return first, False


def _fetch(size: int) -> bytes:
    body = struct.pack(">hh1siqi", 1, 1, b"t", 0, 0, size)
    return struct.pack(">i", len(body)) + body


def stored(port: int) -> bool:
    """Publish until the broker is there and the partition with it."""
    try:
        with BrokerConnection("127.0.0.1", port) as connection:
            connection.produce("t", 0, encode_set([b"hello"]))
            return connection.offsets("t", 0) != [0]
    except Kafka2011Error:
        return False


def test_a_negative_size_is_an_error_here_and_the_end_of_the_connection_there(tmp_path: Path) -> None:
    """0.7 writes a frame whose length is wrong and closes; we answer error -1 and stay (Issue 19 A6)."""
    broker, port = kafka07.broker(tmp_path)
    try:
        until(lambda: stored(port), "the broker of 0.7 has a message")
        assert asked(port, -1) == (b"\0\0\0\1\0\0", False)
    finally:
        broker.close()
    with BrokerProcess(options={"log.flush.interval": 1}) as ours:
        until(lambda: stored(ours.port), "our broker has a message")
        assert asked(ours.port, -1) == (b"\0\0\0\2\xff\xff", True)
