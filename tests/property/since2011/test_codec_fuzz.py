"""No bytes break the codec: random frames and damaged real ones give a value or a clean error.

See docs/modern-port.md (a 20-byte packet kills a kio server). 100,000 frames: FUZZ_FRAMES=100000.
"""

from __future__ import annotations

import os
import random

from kafka2011.errors import Kafka2011Error
from since2011.wire.batches import decode_batches
from since2011.wire.codec import APIS, decode_header, decode_request, decode_response, encode_request
from since2011.wire.codec.tables import ApiKey
from tests.unit.since2011.server.test_batches import sample_batches
from tests.unit.since2011.server.values import OFFERED, random_body

FRAMES = int(os.environ.get("FUZZ_FRAMES", "20000"))


def _mutated(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        what = rng.randrange(4)
        at = rng.randrange(len(out) + 1)
        if what == 0 and at < len(out):
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 1:
            del out[at:]
        elif what == 2:
            out[at:at] = rng.randbytes(rng.randrange(8))
        else:
            out[at : at + 4] = rng.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1"))
    return bytes(out)


def test_any_request_frame_gives_a_value_or_a_clean_error() -> None:
    """Whatever arrives as a frame, nothing but InvalidRequest leaves the codec (docs/modern-port.md)."""
    rng = random.Random(2011)
    refused = 0
    for number in range(FRAMES):
        key, version = OFFERED[number % len(OFFERED)]
        if number % 4 == 0:
            head = key.to_bytes(2, "big") + version.to_bytes(2, "big")
            frame = head + rng.randbytes(rng.choice((6, 12, 20, 60, 200)))
        else:
            body = random_body(rng, APIS[key].request, version)
            frame = _mutated(rng, b"".join(encode_request(key, version, 1, "c", body))[4:])
        try:
            decode_request(frame, decode_header(frame))
        except Kafka2011Error:
            refused += 1

    assert 0.2 * FRAMES < refused < FRAMES


def test_any_answer_frame_gives_a_value_or_a_clean_error() -> None:
    """The client's half of the codec is as hard to break (docs/modern-port.md)."""
    rng = random.Random(2012)
    for number in range(FRAMES // 10):
        key, version = OFFERED[number % len(OFFERED)]
        try:
            decode_response(ApiKey(key), version, rng.randbytes(rng.choice((4, 8, 20, 100))))
        except Kafka2011Error:
            pass


def test_any_record_batch_gives_records_or_a_clean_error() -> None:
    """Damaged batches, their CRC made right again so that the damage gets inside, are refused cleanly.

    See docs/modern-port.md.
    """
    rng = random.Random(2013)
    samples = sample_batches()
    refused = 0
    for number in range(FRAMES // 4):
        data = bytearray(_mutated(rng, samples[number % len(samples)]))
        if len(data) > 61 and number % 3:
            data[16] = 2
            data[8:12] = (len(data) - 12).to_bytes(4, "big")
            data[17:21] = _crc(bytes(data[21:]))
        try:
            decode_batches(bytes(data), 1 << 20)
        except Kafka2011Error:
            refused += 1

    assert refused > FRAMES // 10


def _crc(data: bytes) -> bytes:
    from fastcrc import crc32

    return crc32.iscsi(data).to_bytes(4, "big")
