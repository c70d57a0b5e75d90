"""The topics brokers keep for themselves, and which partition of them holds whom. See docs/group-protocol.md."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
N_PARTITIONS = 50


def java_hash(text: str) -> int:
    """Java's String.hashCode: 31·h + each UTF-16 unit, as a signed 32-bit number."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8) + units[i + 1]) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def partition_of(group: str) -> int:
    """The partition that holds a group: abs(hash) % 50, where abs(-2³¹) is 0 as in Java."""
    h = java_hash(group)
    return 0 if h == -(1 << 31) else abs(h) % N_PARTITIONS
