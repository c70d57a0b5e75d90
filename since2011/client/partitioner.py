"""Which partition a key belongs to, as Kafka's own producers have it: murmur2. Sheet §14.

The paper's answer (§3): a partition chosen at random, or by a key and a function of the application.
"""

from __future__ import annotations

from since2011.wire import record_walk


def partition_of_key(key: bytes, n_partitions: int) -> int:
    """The partition of a key, the same for every client of Kafka."""
    return (record_walk.murmur2(key) & 0x7FFF_FFFF) % n_partitions
