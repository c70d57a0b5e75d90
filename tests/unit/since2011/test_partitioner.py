"""Keys and partitions, the same for every client."""

from __future__ import annotations

import pytest
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from since2011.client.partitioner import partition_of_key
from since2011.wire import record_walk


@pytest.mark.parametrize("key", [b"", b"a", b"ab", b"abc", b"abcd", b"member42", bytes(range(256)), "ключ".encode()])
def test_murmur2_is_kafkas(key: bytes) -> None:
    """Sheet §14: the hash of Kafka's own producers, as kafka-python computes it too."""
    assert record_walk.murmur2(key) == kafka_python_murmur2(key) & 0xFFFF_FFFF
    assert partition_of_key(key, 7) == (kafka_python_murmur2(key) & 0x7FFF_FFFF) % 7
