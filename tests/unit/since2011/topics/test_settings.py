"""Settings of topics: those of a real 3.9, with its defaults, types and limits."""

from __future__ import annotations

import pytest

from kafka2011.errors import ConfigError
from since2011.log.settings import FOREVER, LogConfig, topic_settings

REAL = """
cleanup.policy=delete log.cleanup.policy 7
compression.gzip.level=-1 compression.gzip.level 3
compression.lz4.level=9 compression.lz4.level 3
compression.type=producer compression.type 2
compression.zstd.level=3 compression.zstd.level 3
delete.retention.ms=86400000 log.cleaner.delete.retention.ms 5
file.delete.delay.ms=60000 log.segment.delete.delay.ms 5
flush.messages=9223372036854775807 log.flush.interval.messages 5
flush.ms=9223372036854775807 log.flush.interval.ms 5
follower.replication.throttled.replicas= - 7
index.interval.bytes=4096 log.index.interval.bytes 3
leader.replication.throttled.replicas= - 7
local.retention.bytes=-2 log.local.retention.bytes 5
local.retention.ms=-2 log.local.retention.ms 5
max.compaction.lag.ms=9223372036854775807 log.cleaner.max.compaction.lag.ms 5
max.message.bytes=1048588 message.max.bytes 3
message.downconversion.enable=true log.message.downconversion.enable 1
message.format.version=3.0-IV1 log.message.format.version 2
message.timestamp.after.max.ms=9223372036854775807 log.message.timestamp.after.max.ms 5
message.timestamp.before.max.ms=9223372036854775807 log.message.timestamp.before.max.ms 5
message.timestamp.difference.max.ms=9223372036854775807 log.message.timestamp.difference.max.ms 5
message.timestamp.type=CreateTime log.message.timestamp.type 2
min.cleanable.dirty.ratio=0.5 log.cleaner.min.cleanable.ratio 6
min.compaction.lag.ms=0 log.cleaner.min.compaction.lag.ms 5
min.insync.replicas=1 min.insync.replicas 3
preallocate=false log.preallocate 1
remote.log.copy.disable=false - 1
remote.log.delete.on.disable=false - 1
remote.storage.enable=false - 1
retention.bytes=-1 log.retention.bytes 5
retention.ms=604800000 log.retention.ms 5
segment.bytes=1073741824 log.segment.bytes 3
segment.index.bytes=10485760 log.index.size.max.bytes 3
segment.jitter.ms=0 log.roll.jitter.ms 5
segment.ms=604800000 log.roll.ms 5
unclean.leader.election.enable=false unclean.leader.election.enable 1
"""
"""What kafka-configs --describe --all showed of a topic of a real 3.9.1 broker: value, broker's name, type."""


def test_settings_are_those_of_a_real_kafka() -> None:
    """Every setting of 3.9, and no other, with its default, its broker's name and its type (docs/since-2011.md)."""
    ours = [
        f"{s.name}={s.default_text} {s.of_broker or '-'} {s.type}"
        for s in sorted(topic_settings().values(), key=lambda setting: setting.name)
    ]
    assert ours == REAL.strip().splitlines()


def test_settings_come_back_as_text() -> None:
    """What is written as text is read as the same settings (docs/since-2011.md)."""
    config = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=5, min_cleanable_dirty_ratio=0.25)
    assert LogConfig().with_overrides(config.as_text()) == config


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "wash"),
        ("cleanup.policy", ""),
        ("retention.ms", "-2"),
        ("retention.ms", "1e3"),
        ("retention.ms", str(FOREVER + 1)),
        ("segment.bytes", "13"),
        ("segment.bytes", "2147483648"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "x"),
        ("unclean.leader.election.enable", "yes"),
        ("compression.type", "lzma"),
        ("compression.gzip.level", "0"),
        ("compression.zstd.level", "23"),
        ("message.timestamp.type", "createtime"),
        ("remote.storage.enable", "true"),
        ("leader.replication.throttled.replicas", "1-2"),
        ("no.such.setting", "1"),
        ("retention_ms", "1"),
    ],
)
def test_values_that_cannot_be(name: str, text: str) -> None:
    """A value real Kafka refuses is refused by name (docs/since-2011.md: error 40)."""
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        LogConfig().with_overrides({name: text})


def test_lags_that_contradict_each_other() -> None:
    """A least lag above the greatest is refused: nothing could ever be compacted (Kafka's LogConfig.validate)."""
    with pytest.raises(ConfigError, match="could never be compacted"):
        LogConfig().with_overrides({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})
