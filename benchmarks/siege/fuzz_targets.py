"""The parsers of what strangers, other versions or a damaged disk wrote, with good bytes for each to begin with."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from kafka2011.config import load_config, read_properties
from kafka2011.errors import Kafka2011Error
from kafka2011.log.checkpoint import parse_checkpoint
from kafka2011.wire import (
    Codec,
    FetchRequest,
    FrameSplitter,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    crc32,
    decode_set,
    encode_set,
    parse_request,
    validate_set,
)
from since2011.log.checkpoint import RECOVERY_POINTS, read_offsets
from since2011.log.checkpoint import decode as decode_checkpoint
from since2011.log.identity import META_PROPERTIES, PARTITION_METADATA, read_identity, read_topic_id
from since2011.log.indexes import OffsetIndex, TimeIndex, TxnIndex
from since2011.log.settings import LogConfig
from since2011.log.snapshot import decode_snapshot, encode_snapshot
from since2011.log.validation import Validator
from since2011.wire.batches import decode_batches
from since2011.wire.codec import APIS, ApiKey, decode_header, decode_request, decode_response, encode_request
from since2011.wire.compression import compress, decompress
from since2011.wire.group_records import GroupRecordType, decode_key, decode_value
from since2011.wire.record_batch import headers
from since2011.wire.records import decode_marker
from tests.unit.since2011.server.test_batches import sample_batches
from tests.unit.since2011.server.values import OFFERED, random_body
from zk_registry.brokers import encode_broker, parse_broker, parse_partition_count
from zk_registry.consumers import Subscription, parse_subscription
from zk_registry.offsets import parse_offset

_VALIDATOR = Validator(partial(decompress, limit=1 << 20), compress)
_KEPT, _COMPACTED = LogConfig(), LogConfig(cleanup_policy=("compact",))
_SET = encode_set([b"one", b"two" * 20], codec=Codec.NONE)
_REQUESTS = [
    ProduceRequest("t", 0, _SET).encode(),
    FetchRequest("t", 1, 12, 1000).encode(),
    OffsetsRequest("t", 0, -1, 5).encode(),
    MultiFetchRequest((FetchRequest("t", 0, 0, 9), FetchRequest("u", 0, 0, 9))).encode(),
    MultiProduceRequest((ProduceRequest("t", 0, _SET), ProduceRequest("u", 1, _SET))).encode(),
]


def requests_2011(data: bytes) -> None:
    """A whole frame of the 2011 port."""
    with suppress(Kafka2011Error):
        parse_request(data)


def frames_2011(data: bytes) -> None:
    """A stream of frames, in two pieces."""
    splitter = FrameSplitter(1 << 20)
    with suppress(Kafka2011Error):
        for piece in (data[: len(data) // 2], data[len(data) // 2 :]):
            list(splitter.feed(piece))


def message_sets(data: bytes) -> None:
    """A message set, as a broker checks it and as a consumer reads it; both take or both refuse it."""
    outcomes = []
    for read in (validate_set, decode_set):
        try:
            read(data)
            outcomes.append("")
        except Kafka2011Error as error:
            outcomes.append(type(error).__name__)
    assert bool(outcomes[0]) == bool(outcomes[1]), outcomes


def modern_requests(data: bytes) -> None:
    """A frame of the modern port."""
    with suppress(Kafka2011Error):
        decode_request(data, decode_header(data))


def modern_answers(data: bytes) -> None:
    """An answer, as our own member reads it; the first byte chooses which."""
    key, version = OFFERED[data[0] % len(OFFERED)] if data else OFFERED[0]
    with suppress(Kafka2011Error):
        decode_response(ApiKey(key), version, data[1:])


def batches(data: bytes) -> None:
    """Record batches, with the damage inside or outside the checksum."""
    for mended in (data, _mended(data)):
        with suppress(Kafka2011Error):
            decode_batches(mended, 1 << 20)


def _mended(data: bytes) -> bytes:
    from fastcrc import crc32 as checksums

    if len(data) < 62:
        return data
    head = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:16] + b"\2"
    return head + checksums.iscsi(data[21:]).to_bytes(4, "big") + data[21:]


def registry(data: bytes) -> None:
    """The texts of nodes in ZooKeeper."""
    parse_broker("1", data)
    parse_partition_count(data)
    parse_subscription(data)
    offset = parse_offset(data)
    assert offset is None or 0 <= offset < 2**63


def offsets_records(data: bytes) -> None:
    """Keys and values of the offsets log."""
    with suppress(Kafka2011Error):
        decode_key(data)
    for kind in GroupRecordType:
        with suppress(Kafka2011Error):
            decode_value(kind, data)


def modern_records(data: bytes) -> None:
    """A client's batch on its way into a modern log, looked into or not, its damage inside or outside the checksum."""
    for mended in (data, _mended(data)):
        for validator in (_VALIDATOR, replace(_VALIDATOR, full=True)):
            with suppress(Kafka2011Error):
                validator.prepare(mended, _COMPACTED if validator.full else _KEPT, 1_700_000_000_000)
        with suppress(Kafka2011Error):
            for position, header in headers(mended):
                batch = mended[position : position + header.size]
                with suppress(Kafka2011Error):
                    decode_marker(batch, header)


def modern_files(data: bytes) -> None:
    """Snapshots, checkpoints, indexes and identities of modern logs: read, or refused by name."""
    with suppress(Kafka2011Error):
        decode_snapshot(data, "fuzzed")
    with suppress(Kafka2011Error):
        decode_checkpoint(data, "fuzzed")
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        for name in ("a.index", "a.timeindex", "a.txnindex", RECOVERY_POINTS, META_PROPERTIES, PARTITION_METADATA):
            (directory / name).write_bytes(data)
        for load in (
            OffsetIndex(directory / "a.index", 0, 1 << 20).load,
            TimeIndex(directory / "a.timeindex", 0, 1 << 20).load,
            partial(TxnIndex(directory / "a.txnindex").load, 0),
            partial(read_offsets, directory / RECOVERY_POINTS),
            partial(read_identity, directory),
            partial(read_topic_id, directory),
        ):
            with suppress(Kafka2011Error):
                load()


def checkpoint(data: bytes) -> None:
    """The checkpoint and its inventory, also with its checksum made right again."""
    body = data.rpartition(b"crc ")[0]
    for text in (data, body + b"crc %08x\n" % crc32(body)):
        with suppress(ValueError):
            parse_checkpoint(text)


def configuration(data: bytes) -> None:
    """A settings file, and each of its lines as a flag."""
    found = list(read_properties(data.decode("utf-8", "replace")))
    with suppress(Kafka2011Error):
        load_config(flags={name: value for _, name, value in found})


def planted(data: bytes) -> None:
    """The control: a parser with a fault behind three bytes. A fuzzer that does not find it is none."""
    if data[:1] != b"k":
        return
    if data[1:2] != b"a":
        return
    if data[2:3] == b"f":
        raise LookupError("planted")


def _modern_seeds() -> list[bytes]:
    rng = random.Random(2011)
    return [b"".join(encode_request(k, v, 1, "c", random_body(rng, APIS[k].request, v)))[4:] for k, v in OFFERED]


_CHECKPOINT = (
    b"kafka2011 recovery points 2\nt-0 0 24 0+12@13 12+12@14\nu-1 5 9 ?\nmissing t-0 0 5 t-0/0.kafka\nclosed\n"
)
_CONFIG = b"# a\nport=9092\nlog.dir = /x\\\n  y\nnum.partitions: 4\ntopic.log.file.size=a:1,b:2\nx\\u0041=1\n"

TARGETS: dict[str, tuple[Callable[[bytes], object], Sequence[bytes]]] = {
    "2011 requests": (requests_2011, [request[4:] for request in _REQUESTS]),
    "2011 frames": (frames_2011, [*_REQUESTS, b"".join(_REQUESTS)]),
    "message sets": (message_sets, [_SET, *(encode_set([b"x" * 30] * 3, codec=codec) for codec in Codec)]),
    "modern requests": (modern_requests, _modern_seeds()),
    "modern answers": (modern_answers, [bytes([k]) + bytes(40) for k in range(len(OFFERED))]),
    "batches": (batches, sample_batches()),
    "modern records": (modern_records, sample_batches()),
    "registry": (
        registry,
        [
            encode_broker("h", 9092, 1),
            b"3",
            Subscription.fixed({"t": 2}).encode(),
            Subscription.whitelist("a.*", 1).encode(),
        ],
    ),
    "offsets records": (offsets_records, [b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3" + bytes(30)]),
    "modern files": (
        modern_files,
        [encode_snapshot(()), b"0\n1\nclicks 0 42\n", b"broker.id=0\nversion=0\n", b"version: 0\ntopic_id: AAAA"],
    ),
    "checkpoint": (checkpoint, [_CHECKPOINT + b"crc %08x\n" % crc32(_CHECKPOINT)]),
    "configuration": (configuration, [_CONFIG]),
}
CONTROL = "planted"
TARGETS[CONTROL] = (planted, [b"ka."])
