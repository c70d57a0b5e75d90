"""Record batches of version 2, read and written. See docs/modern-port.md."""

from __future__ import annotations

import cramjam
import pytest
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from kafka2011.errors import InvalidMessage
from kafka2011.wire.compression import compress
from kafka2011.wire.message import Codec
from since2011.wire.batches import OldMessageFormat, decode_batches, encode_batch
from since2011.wire.compression import GZIP, LZ4, SNAPPY, ZSTD, UnknownCompression, decompress

LIMIT = 1 << 20
KEY_VALUE = bytes.fromhex(
    "00000000000000000000003a0000000002e99b8dd80000000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffff"
    "ffff0000000110000000026b027600"
)
MARKER = bytes.fromhex(
    "0000000000000032000000420000000002faf141810030000000000000018bcfe568000000018bcfe5680000000000000003e80002ffff"
    "ffff000000012000000008000000010c00000000000000"
)


def built(
    values: list[bytes | None], *, producer: tuple[int, int, int] = (-1, -1, -1), key: bytes | None = None
) -> bytes:
    """A batch as kafka-python writes it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        batch_size=1 << 24,
    )
    for number, value in enumerate(values):
        builder.append(number, timestamp=1_700_000_000_000, key=key, value=value, headers=[("h", b"v")] if key else [])
    return bytes(builder.build())


def compressed(codec: int, values: list[bytes | None]) -> bytes:
    """The same batch with its records compressed."""
    from fastcrc import crc32

    plain = built(values)
    body = {
        GZIP: lambda d: compress(Codec.GZIP, d), SNAPPY: lambda d: bytes(cramjam.snappy.compress_raw(d)),
        LZ4: lambda d: bytes(cramjam.lz4.compress(d)), ZSTD: lambda d: bytes(cramjam.zstd.compress(d)),
    }[codec](plain[61:])  # fmt: skip
    rest = codec.to_bytes(2, "big") + plain[23:61] + body
    return plain[:8] + (len(rest) + 9).to_bytes(4, "big") + plain[12:17] + crc32.iscsi(rest).to_bytes(4, "big") + rest


def sample_batches() -> list[bytes]:
    """Batches of every kind, for tests that damage them."""
    values: list[bytes | None] = [b"a" * 50, None, b"", b"b" * 7]
    keyed = built(values, key=b"k", producer=(7, 0, 3))
    return [KEY_VALUE, MARKER, keyed, *(compressed(codec, values) for codec in range(1, 5))]


def test_known_batches_are_read() -> None:
    """The batches of the fact sheet, byte for byte (docs/modern-port.md)."""
    (batch,) = decode_batches(KEY_VALUE, LIMIT)
    (marker,) = decode_batches(MARKER, LIMIT)

    assert (batch.values, batch.n_keys, batch.control) == ([b"v"], 1, False)
    assert (marker.control, marker.transactional, marker.producer_id, marker.producer_epoch) == (True, True, 1000, 2)


def test_a_producers_batch_is_read_whole() -> None:
    """Values, nulls, producer id and sequence come out; keys and headers are counted (docs/modern-port.md)."""
    (batch,) = decode_batches(built([b"x", None, b""], producer=(9, 1, 5), key=b"k"), LIMIT)

    assert batch.values == [b"x", None, b""]
    assert (
        batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.n_keys, batch.n_headers,
    ) == (9, 1, 5, 3, 3)  # fmt: skip


def test_several_batches_follow_each_other() -> None:
    """A Produce may carry several batches end to end (docs/modern-port.md)."""
    assert [b.values for b in decode_batches(built([b"1"]) + built([b"2", b"3"]), LIMIT)] == [[b"1"], [b"2", b"3"]]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_every_compression_is_opened(codec: int) -> None:
    """gzip, snappy, lz4 and zstd batches are opened, well compressed ones too (docs/modern-port.md)."""
    values: list[bytes | None] = [b"x" * 1000] * 500

    (batch,) = decode_batches(compressed(codec, values), LIMIT)

    assert (values, codec) == (batch.values, batch.codec)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_no_more_than_the_limit_is_inflated(codec: int) -> None:
    """A compression bomb is refused at the limit (research/docs/reliability.md, M3)."""
    with pytest.raises(InvalidMessage):
        decode_batches(compressed(codec, [bytes(100_000)]), 50_000)


def test_damage_is_found() -> None:
    """A flipped bit fails the CRC; so do cut, lengthened and miscounted batches (docs/modern-port.md)."""
    good = built([b"hello", b"world"])
    for bad in (
        good[:-1],
        good + b"\0",
        good[:40] + bytes([good[40] ^ 1]) + good[41:],
        good[:8] + b"\0\0\0\x05" + good[12:],
        good[:10],
    ):
        with pytest.raises(InvalidMessage):
            decode_batches(bad, LIMIT)


def test_old_formats_and_unknown_codecs_are_named() -> None:
    """Magic 0 and 1 may not come in Produce 3 and later; codec 5 is nobody's (docs/modern-port.md)."""
    good = built([b"x"])
    with pytest.raises(OldMessageFormat):
        decode_batches(good[:16] + b"\x01" + good[17:], LIMIT)
    with pytest.raises(UnknownCompression):
        decompress(5, b"", LIMIT)


def test_what_we_write_others_read() -> None:
    """kafka-python reads our batch: offsets with gaps, no key, no timestamp, right CRC (docs/modern-port.md)."""
    records = MemoryRecords(encode_batch(100, 172, [(119, b"a" * 10), (140, b""), (170, b"x" * 300)]))

    batch = records.next_batch()
    assert batch is not None and batch.validate_crc()
    found = [(r.offset, r.value, r.key, r.timestamp) for r in batch]

    assert (batch.base_offset, batch.last_offset_delta) == (100, 72)
    assert found == [(119, b"a" * 10, None, -1), (140, b"", None, -1), (170, b"x" * 300, None, -1)]
