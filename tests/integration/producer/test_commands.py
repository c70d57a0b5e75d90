"""``kafka2011 produce`` and ``kafka2011 fetch`` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.producer import Codec, Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    small = {"log.flush.interval": 1, "log.file.size": 2000, "num.partitions": 2}
    with BrokerProcess(options=small | {"produce.acks.enable": True}) as process:
        yield process


def kafka2011(broker: BrokerProcess, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "kafka2011", words[0], "-b", broker.address, *words[1:]]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


def fill(broker: BrokerProcess, topic: str, count: int, codec: Codec = Codec.NONE) -> list[bytes]:
    """Store ``count`` messages in partition 0, ten to a request, over several segments."""
    payloads = [b"%s %d" % (topic.encode(), i) for i in range(count)]
    with BrokerConnection(broker.host, broker.port) as connection:
        for start in range(0, count, 10):
            connection.produce(topic, 0, encode_set(payloads[start : start + 10], codec=codec))
        size = len(encode_set(payloads))
        if codec is Codec.NONE:
            until(lambda: connection.offsets(topic, 0) == [size], "everything is flushed")
    return payloads


def test_lines_in_lines_out(broker: BrokerProcess, tmp_path: Path) -> None:
    """stdin lines and files become messages and come back as lines, byte for byte, also empty and last ones."""
    lines = b"hello\n\ncaf\xc3\xa9 \xff\nno newline at the end"
    sent = kafka2011(broker, "produce", "lines", "--partition", "1", "--acks", "flushed", stdin=lines)
    assert sent.returncode == 0, sent.stderr
    assert b"4 messages sent" in sent.stderr
    assert sent.stdout == b""
    (tmp_path / "more.log").write_bytes(b"from a file\n")
    kafka2011(broker, "produce", "lines", "-p", "1", "--acks", "flushed", "--file", str(tmp_path / "more.log"))
    read = kafka2011(broker, "fetch", "lines", "-p", "1", "-e")

    assert read.returncode == 0, read.stderr
    assert read.stdout == lines + b"\nfrom a file\n"
    assert b"5 messages" in read.stderr


def test_a_partition_that_is_not_there_takes_nothing(broker: BrokerProcess) -> None:
    """``produce -p 7`` to a broker with two partitions fails instead of sending into the void (issue 22 C2)."""
    refused = kafka2011(broker, "produce", "elsewhere", "-p", "7", stdin=b"lost\n")

    assert refused.returncode == 1
    assert b"elsewhere-7: the broker has no such partition" in refused.stderr
    assert b"sent" not in refused.stderr


@pytest.mark.parametrize(
    ("where", "expected"),
    [("begin", range(300)), ("-3", range(297, 300)), ("-150", range(150, 300)), ("-9999", range(300)), ("end", [])],
)
def test_where_to_begin(broker: BrokerProcess, where: str, expected: range) -> None:
    """begin, end and the last N, over several segments (§3.1)."""
    payloads = fill(broker, f"where{where}", 300)
    read = kafka2011(broker, "fetch", f"where{where}", "-o", where, "-e", "--max-bytes", "700")

    assert read.stdout.splitlines() == [payloads[i] for i in expected]


def test_formats_numbers_and_counts(broker: BrokerProcess) -> None:
    """A format string shows topic, partition, offset, next offset, payload and hex; JSON has the same fields."""
    fill(broker, "shape", 20)
    read = kafka2011(broker, "fetch", "shape", "-n", "2", "-f", r"%t %p %o %n %s %x %S%%\n")
    assert read.stdout == b"shape 0 0 17 shape 0 736861706520302e 7%\n".replace(b"302e", b"30") + (
        b"shape 0 17 34 shape 1 73686170652031 7%\n"
    )
    read = kafka2011(broker, "fetch", "shape", "-o", "17", "-n", "1", "--json")
    assert json.loads(read.stdout) == {
        "topic": "shape",
        "partition": 0,
        "offset": 17,
        "next_offset": 34,
        "payload": "shape 1",
    }


def test_the_last_messages_inside_a_compressed_set(broker: BrokerProcess) -> None:
    """The last N may begin inside a wrapper: the messages before it are skipped (docs/protocol.md)."""
    with Producer(broker.address, codec=Codec.GZIP, sync=True, acks="flushed") as producer:
        producer.send("packed", [b"%d" % i for i in range(25)])
    outputs = [kafka2011(broker, "fetch", "packed", "-p", str(p), "-o", "-3", "-e").stdout for p in (0, 1)]

    assert sorted(outputs) == [b"", b"22\n23\n24\n"]


def test_errors_are_one_line_and_a_code(broker: BrokerProcess) -> None:
    """Failure is exit code 1 and a sentence with what to do; wrong usage is 2; nothing on stdout."""
    fill(broker, "short", 10)
    for code, words, sentence in (
        (1, ("fetch", "short", "-o", "5000"), b"which holds 0 up to 170"),
        (2, ("fetch", "short", "-o", "yesterday"), b"none of begin"),
        (2, ("fetch", "short", "-f", "%q"), b"%q means nothing"),
        (1, ("produce", "a/b"), b"cannot be a topic"),
        (2, ("produce", "x", "-k", ":"), b"needs --zookeeper"),
    ):
        result = kafka2011(broker, *words, stdin=b"x\n")
        assert (result.returncode, result.stdout) == (code, b""), result.stderr
        assert sentence in result.stderr
        assert b"Traceback" not in result.stderr
