"""Attacks on the modern port, as they were seen with a single unprivileged client (issue 19 B1 to B5)."""

from __future__ import annotations

import gzip
import resource
import struct

import cramjam
from fastcrc import crc32

from benchmarks.siege.attacks_2011 import wrapper
from benchmarks.siege.field import Broken, Field, MiB, Row
from kafka2011.wire import ProduceRequest, encode_set
from since2011.wire.batches import HEAD_SIZE, encode_batch
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.compression import GZIP, ZSTD
from tests.integration.since2011.wire_client import produce_body

_CRC_AT, _ATTRIBUTES_AT = 17, 21
MOST_ANSWER = 8 * MiB


def packed(codec: int, values: list[bytes]) -> bytes:
    """A record batch whose records are compressed."""
    plain = encode_batch(0, len(values) - 1, list(enumerate(values)))
    body = plain[HEAD_SIZE:]
    small = gzip.compress(body, 9) if codec == GZIP else bytes(cramjam.zstd.compress(body, 19))
    rest = struct.pack(">h", codec) + plain[_ATTRIBUTES_AT + 2 : HEAD_SIZE] + small
    head = plain[:8] + struct.pack(">i", len(rest) + 9) + plain[12:_CRC_AT]
    return head + struct.pack(">I", crc32.iscsi(rest)) + rest


def numbered(producer_id: int, value: bytes) -> bytes:
    """A batch of one record by an idempotent producer, its first."""
    plain = encode_batch(0, 0, [(0, value)])
    rest = plain[_ATTRIBUTES_AT:43] + struct.pack(">qhi", producer_id, 0, 0) + plain[57:]
    return plain[:_CRC_AT] + struct.pack(">I", crc32.iscsi(rest)) + rest


def _bombs(field: Field, codec: int, size: int) -> None:
    bomb = packed(codec, [bytes(900_000)] * 70)
    for _ in range(2):
        client = field.modern()
        client.ask(ApiKey.PRODUCE, 7, produce_body("bombs", bomb * max(1, size // len(bomb))))


def zstd_bombs(field: Field) -> None:
    """B1: 256 KiB of zstd in one produce, 63 MB in each batch."""
    _bombs(field, ZSTD, 256 * 1024)


def gzip_bombs(field: Field) -> None:
    """B1: 7 MiB of gzip in one produce."""
    _bombs(field, GZIP, 7 * MiB)


def stored_bombs(field: Field) -> None:
    """B2: 200 stored wrappers of a kilobyte, a megabyte inside each; an answer to a fetch stays small."""
    one = wrapper(gzip.compress(encode_set([bytes(900_000)]), 9))
    writer = field.raw()
    for _ in range(200):
        writer.send(ProduceRequest("stored", 0, one).encode())
    writer.wait_for("stored", 200 * len(one))
    client = field.modern()
    for _ in range(3):
        size = len(client.fetch("stored", 0, max_bytes=50 * MiB).records)
        if size > MOST_ANSWER:
            raise Broken(f"one answer of {size / MiB:.0f} MiB")


def topics_by_metadata(field: Field) -> None:
    """B3: three thousand topics in one Metadata request."""
    client = field.modern()
    topics = [Struct(name=f"t{k}") for k in range(3000)]
    client.ask(ApiKey.METADATA, 8, Struct(topics=topics, auto_create=True))


def topics_and_few_files(field: Field) -> None:
    """B3: 1,005 topics when the process may open 1,024 files: newcomers are still served."""
    resource.prlimit(field.broker.pid, resource.RLIMIT_NOFILE, (1024, 1024))
    client = field.modern()
    for first in range(0, 1005, 67):
        topics = [Struct(name=f"t{k}") for k in range(first, first + 67)]
        client.ask(ApiKey.METADATA, 8, Struct(topics=topics, auto_create=True))
        for k in range(first, first + 67):
            client.produce(f"t{k}", [b"x"], acks=1)


def joining_with_luggage(field: Field) -> None:
    """B4: 1,200 members that join with a megabyte each and hang up."""
    luggage = bytes(1_000_000)
    for k in range(1200):
        body = Struct(group=f"g{k % 40}", session_ms=300_000, rebalance_ms=300_000, member="", type="consumer",
                      protocols=[Struct(name="range", metadata=luggage)])  # fmt: skip
        try:
            field.modern().send(ApiKey.JOIN_GROUP, 3, body)
        except OSError:
            pass  # refused
        if not k % 20:
            field.let_go()


def empty_records(field: Field) -> None:
    """B5: twenty batches of 400,000 empty records."""
    batch = packed(ZSTD, [b""] * 400_000)
    client = field.modern()
    for _ in range(20):
        client.ask(ApiKey.PRODUCE, 7, produce_body("empty", batch))


def giant_commits(field: Field) -> None:
    """B5: sixty commits of twenty thousand partitions each."""
    client = field.modern()
    rows = [Struct(index=k, offset=k, metadata="x" * 20) for k in range(20_000)]
    for k in range(60):
        body = Struct(group=f"commits-{k}", member="", topics=[Struct(name="t", partitions=rows)])
        client.ask(ApiKey.OFFSET_COMMIT, 7, body)


def producers_without_end(field: Field) -> None:
    """B5: sixty thousand producer ids, one batch each."""
    client = field.modern()
    for first in range(0, 60_000, 500):
        for k in range(first, first + 500):
            client.send(ApiKey.PRODUCE, 7, produce_body("ids", numbered(k, b"x"), acks=1))
        for _ in range(500):
            client.receive_frame()


ROWS = (
    Row("B1 256 KiB of zstd, 6 GB inside", "issue 19 B1", zstd_bombs),
    Row("B1 7 MiB of gzip, 7 GB inside", "issue 19 B1", gzip_bombs),
    Row("B2 stored wrappers, fetched", "issue 19 B2", stored_bombs),
    Row("B3 three thousand topics by metadata", "issue 19 B3", topics_by_metadata),
    Row("B3 1,005 topics and 1,024 files", "issue 19 B3", topics_and_few_files),
    Row("B4 1,200 members with a megabyte each", "issue 19 B4", joining_with_luggage),
    Row("B5 eight million empty records", "issue 19 B5", empty_records),
    Row("B5 sixty giant commits", "issue 19 B5", giant_commits),
    Row("B5 sixty thousand producers", "issue 19 B5", producers_without_end),
)
