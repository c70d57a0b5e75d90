"""Which partition a key belongs to, as Kafka's own producers have it: murmur2. Sheet §14.

The paper's answer (§3): a partition chosen at random, or by a key and a function of the application.
"""

from __future__ import annotations

_MASK = 0xFFFF_FFFF
_M, _SEED = 0x5BD1E995, 0x9747B28C


def murmur2(data: bytes) -> int:
    """Murmur 2 with Kafka's seed, as an unsigned number of 32 bits."""
    h = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if whole < len(data):
        h = ((h ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def partition_of_key(key: bytes, n_partitions: int) -> int:
    """The partition of a key, the same for every client of Kafka."""
    return (murmur2(key) & 0x7FFF_FFFF) % n_partitions
