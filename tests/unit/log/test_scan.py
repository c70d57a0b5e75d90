"""Telling a torn tail from damage, in time proportional to the bytes (§3.3, docs/reliability.md)."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from kafka2011.log.scan import intact_until, something_follows
from kafka2011.wire import Codec, Message, encode_message, encode_set

ENTRY = encode_set([b"ab"])


@pytest.mark.parametrize(
    "data",
    [
        encode_set([b"a", b"", b"ccc"]),
        encode_set([b"a", b"b"], magic=0),
        encode_set([b"a" * 700_000, b"b" * 700_000, b"c" * 2_500_000, b"d"]),
        encode_set([b"x" * 200] * 20_000),
        encode_set([b"a"], codec=Codec.GZIP) + encode_set([b"b"], codec=Codec.SNAPPY),
        encode_message(Message(b"never opened", attributes=1)),
    ],
    ids=["plain", "old", "large", "many", "wrappers", "a wrapper that cannot be opened"],
)
def test_intact_bytes_are_recognised(tmp_path: Path, data: bytes) -> None:
    """Every whole entry with a right CRC counts, wrappers unopened; a tail does not (docs/log.md)."""
    path = tmp_path / "segment"
    for tail in (b"", b"\0", bytes(100), b"\xff" * 100, ENTRY[:-1], encode_message(Message(b"y" * 5000))[:-1]):
        path.write_bytes(data + tail)
        fd = os.open(path, os.O_RDONLY)
        assert intact_until(fd, 0, len(data + tail)) == len(data)
        os.close(fd)


@pytest.mark.parametrize(
    ("after", "follows"),
    [
        (b"", False),
        (bytes(500), False),
        (b"\xff" * 500, False),
        (b"\xff" * 50 + ENTRY, True),
        (bytes(50) + ENTRY + bytes(50), True),
        (b"\x7f\xff\xff\xff\x01" + ENTRY * 2, True),
        (encode_message(Message(ENTRY * 3 + b"tail"))[:-2], False),
        (ENTRY[:-1] + b"!" + ENTRY, True),
        (ENTRY[:-1] + b"!", False),
    ],
)
def test_what_follows_damage(after: bytes, follows: bool) -> None:
    """Intact messages after the damage are found; messages inside a cut-off payload are not taken for them."""
    data = ENTRY + after
    assert something_follows(data, len(ENTRY), len(data)) is follows


def test_work_is_bounded() -> None:
    """Megabytes of zeros, of noise, and of bytes made to look like messages take seconds of work at most."""
    noise = random.Random(1).randbytes(1 << 20)
    trap = b"\0\0\x40\0\1" * 200_000
    begun = time.process_time()
    assert not something_follows(bytes(8 << 20), 0, 8 << 20)
    assert not something_follows(noise, 0, len(noise))
    # Too many to look at: then damage is assumed, which keeps every byte.
    assert something_follows(trap, 0, len(trap))
    assert time.process_time() - begun < 60
