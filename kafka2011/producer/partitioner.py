"""Which of n partitions a key belongs to.

Without a key the producer picks at random. With one, the same key always lands on the same partition while the
number of partitions stays the same, by the hash Kafka 0.7 used: Java's ``String.hashCode``, so that producers of both
eras agree.

Paper: §3.2 ("a producer can publish to either a randomly selected partition or a partition semantically determined
by a partitioning key and a partitioning function").
"""

from __future__ import annotations

from collections.abc import Callable

Key = str | bytes
Partitioner = Callable[[Key, int], int]
"""Given a key and the number of partitions n, return a number from 0 to n - 1."""


def java_hash(key: Key) -> int:
    """Java's ``hashCode`` of the text: h = 31 h + c over UTF-16 units, in 32-bit two's complement.

    Bytes count as UTF-8 text; where they are not, each stray byte counts as one unit.
    """
    text = key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
    h = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            h = (31 * h + unit) & 0xFFFFFFFF
    else:
        raw = text.encode("utf-16-be", "surrogatepass")
        for i in range(0, len(raw), 2):
            h = (31 * h + (raw[i] << 8 | raw[i + 1])) & 0xFFFFFFFF
    return h - (1 << 32) if h & 0x80000000 else h


def hash_partitioner(key: Key, n_partitions: int) -> int:
    """0.7's default: ``|hash| mod n``.

    Differs: the one hash without a positive 32-bit form, -2^31, is taken as 2^31 here; 0.7 refused such a key.
    """
    return abs(java_hash(key)) % n_partitions
