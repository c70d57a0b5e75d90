"""Keys: the same key, the same partition, as Kafka 0.7 would have it."""

from __future__ import annotations

import pytest

from kafka2011.producer import hash_partitioner, java_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("test", 3556498),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("\N{GRINNING FACE}", 0xD83D * 31 + 0xDE00),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    """Strings hash as in Java: h = 31 h + c over UTF-16 units, 32 bits (docs/producer.md); bytes count as UTF-8."""
    assert java_hash(text) == expected
    assert java_hash(text.encode()) == expected


def test_the_partition_of_a_key() -> None:
    """ "test" goes to partition 2 of 4 and 3 of 5, as 0.7 computes it (docs/producer.md)."""
    assert (hash_partitioner("test", 4), hash_partitioner("test", 5)) == (2, 3)


def test_every_key_has_a_partition() -> None:
    """Any bytes are a key, and the one hash without a positive form has a partition too."""
    assert hash_partitioner("polygenelubricants", 7) == 2**31 % 7
    for key in (b"\xff\xfe", b""):
        assert 0 <= hash_partitioner(key, 7) < 7
