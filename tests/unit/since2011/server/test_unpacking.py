"""Produce requests become 2011 bytes within one budget. Issue 19 B1, B5."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from kafka2011.errors import InvalidMessage, Kafka2011Error, SetTooLarge
from kafka2011.wire import Budget
from since2011.era2011.unpacking import QUICK_RECORDS, Unpacker
from since2011.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal
from tests.unit.since2011.server.test_batches import built, compressed

MiB = 1 << 20
UNPACKER = Unpacker(max_batch=8 * MiB, max_payload=MiB)
ZEROS: list[bytes | None] = [bytes(500_000)] * 2
"""Records that compress very well; a batch of them is a megabyte."""


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_the_batches_of_a_request_share_one_budget(codec: int) -> None:
    """B1: "one budget per request of inflated bytes", over batches and partitions; the refusal has a name."""
    one = compressed(codec, ZEROS)
    first, second, third = UNPACKER.unpack([one * 4, one * 4, one], Budget(5 * MiB, 1000))

    assert isinstance(first, list)
    assert len(first) == 4
    assert isinstance(second, SetTooLarge)
    assert refusal(second)[0] == ErrorCode.MESSAGE_TOO_LARGE
    assert isinstance(third, list | Kafka2011Error)


def test_records_are_counted_before_they_are_read() -> None:
    """B5: more records than a request may hold are refused by what the batch says it holds, before it is opened."""
    one = built([b""] * 600)
    (found,) = UNPACKER.unpack([one * 3], Budget(MiB, 1000))
    liar = bytearray(one)
    liar[57:61] = (2**31 - 1).to_bytes(4, "big")
    (lied,) = UNPACKER.unpack([bytes(liar)], Budget(MiB, 1000))

    assert isinstance(found, SetTooLarge)
    assert refusal(found) == (ErrorCode.MESSAGE_TOO_LARGE, "more than 1000 messages at once; send smaller sets")
    assert isinstance(lied, InvalidMessage), "the CRC of a lie is wrong"


def test_a_refused_request_keeps_nothing_alive() -> None:
    """B1: the verdict on a bomb does not hold on to what the bomb had become."""
    bomb = compressed(ZSTD, ZEROS) * 20
    budget = Budget(8 * MiB, 1000)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        (found,) = UNPACKER.unpack([bomb], budget)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()

    assert isinstance(found, SetTooLarge)
    assert kept < MiB // 2
    assert peak < 32 * MiB


@pytest.mark.parametrize(
    ("data", "quick"),
    [
        (built([b"x" * 100] * 100), True),
        (compressed(ZSTD, [b"x" * 100] * 100), True),
        (built([b"x" * 100_000]), False),
        (compressed(GZIP, ZEROS), False),
        (built([b""] * (QUICK_RECORDS + 1)), False),
    ],
    ids=["small", "small and compressed", "large", "inflates", "many records"],
)
def test_what_takes_long_is_seen_at_once(data: bytes, quick: bool) -> None:
    """B1: "anything over a few milliseconds leaves the reactor thread"."""
    assert (UNPACKER.quickly([data]) is not None) is quick


def test_what_is_wrong_is_wrong_quickly_too() -> None:
    """A damaged batch beside a good one costs only its own partition."""
    good, bad = UNPACKER.quickly([built([b"x"]), built([b"x"])[:-1]]) or [None, None]

    assert isinstance(good, list)
    assert isinstance(bad, InvalidMessage)
