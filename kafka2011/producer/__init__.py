"""The producer (§3, §3.2, §5): batches, partitions, routing, the audit of §4."""

from __future__ import annotations

from kafka2011.producer.audit import Audit
from kafka2011.producer.counters import Counters
from kafka2011.producer.partitioner import hash_partitioner, java_hash
from kafka2011.producer.producer import Producer
from kafka2011.producer.routing import Router, StaticRouter, parse_brokers
from kafka2011.wire import Codec, Message, MessageSet

__all__ = [
    "Audit",
    "Codec",
    "Counters",
    "Message",
    "MessageSet",
    "Producer",
    "Router",
    "StaticRouter",
    "hash_partitioner",
    "java_hash",
    "parse_brokers",
]
