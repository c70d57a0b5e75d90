"""What a broker is told about its logs: sizes, flush, retention, partition counts, per topic where it matters.

Paper: §3.1 (segment size, flush after so many messages or so much time), §3.1 Stateless broker (retention).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kafka2011.types import MAX_NAME_LENGTH

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of all logs of one broker. The ``topic_…`` maps override by topic; keys are 0.7's.

    See docs/configuration.md.
    """

    num_partitions: int = 1
    topic_partitions: Mapping[str, int] = field(default_factory=dict)
    file_size: int = 1024 * 1024 * 1024
    topic_file_size: Mapping[str, int] = field(default_factory=dict)
    roll_ms: int = 168 * HOUR_MS
    topic_roll_ms: Mapping[str, int] = field(default_factory=dict)
    flush_messages: int = 500
    flush_interval_ms: int = 3000
    topic_flush_interval_ms: Mapping[str, int] = field(default_factory=dict)
    retention_ms: int = 168 * HOUR_MS
    topic_retention_ms: Mapping[str, int] = field(default_factory=dict)
    retention_size: int = -1
    topic_retention_size: Mapping[str, int] = field(default_factory=dict)
    max_deletes_per_pass: int = 1000
    max_topics: int = 10_000
    max_partitions: int = 20_000
    max_topic_name_length: int = MAX_NAME_LENGTH
    corrupt_policy: Literal["offline", "truncate"] = "offline"

    def partition_count(self, topic: str) -> int:
        """How many partitions this broker has of ``topic``: configuration alone decides."""
        return self.topic_partitions.get(topic, self.num_partitions)

    def file_size_of(self, topic: str) -> int:
        """A segment larger than this is rolled before the next append."""
        return self.topic_file_size.get(topic, self.file_size)

    def roll_ms_of(self, topic: str) -> int:
        """A segment first appended to longer ago than this is rolled."""
        return self.topic_roll_ms.get(topic, self.roll_ms)

    def flush_interval_ms_of(self, topic: str) -> int:
        """How long a message may wait for its flush."""
        return self.topic_flush_interval_ms.get(topic, self.flush_interval_ms)

    def retention_ms_of(self, topic: str) -> int:
        """How long a segment is kept after its last append."""
        return self.topic_retention_ms.get(topic, self.retention_ms)

    def retention_size_of(self, topic: str) -> int:
        """How many bytes a partition keeps at least; negative: no limit."""
        return self.topic_retention_size.get(topic, self.retention_size)
