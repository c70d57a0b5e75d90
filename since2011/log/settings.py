"""What a topic may set, by real Kafka's names, with its defaults (Kafka 3.9).

Each field of ``LogConfig`` is one setting and the only declaration of it: type, default, which values it may have, its
help, and the setting of the broker that gives topics their default (``log.`` + name, where that is not said). The
loader, the manual, CreateTopics, DescribeConfigs and AlterConfigs are made from it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from kafka2011.errors import ConfigError

FOREVER = 2**63 - 1
INT_MAX = 2**31 - 1
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
"""Types of settings, by the numbers DescribeConfigs has for them."""
_CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
Parse = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One setting a topic may have."""

    name: str
    type: int
    default: Any
    parse: Parse
    help: str
    of_broker: str | None
    """The broker's setting that holds where a topic sets nothing; None: there is none."""

    @property
    def default_text(self) -> str:
        return _text(self.default)


def _setting(default: Any, type: int, parse: Parse, help: str, of_broker: str | None = "") -> Any:
    return field(default=default, metadata={"type": type, "parse": parse, "help": help, "of_broker": of_broker})


def _int(default: int, help: str, least: int, of_broker: str | None = "", most: int = INT_MAX) -> Any:
    return _setting(default, INT, _number(least, most), help, of_broker)


def _long(default: int, help: str, least: int, of_broker: str | None = "") -> Any:
    return _setting(default, LONG, _number(least), help, of_broker)


def _bool(default: bool, help: str, of_broker: str | None = "") -> Any:
    return _setting(default, BOOLEAN, _switch, help, of_broker)


def _number(least: int, most: int = FOREVER) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().removeprefix("-").isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return value


def _switch(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def _only_false(text: str) -> bool:
    if _switch(text):
        raise ValueError("false: there is no remote storage here")
    return False


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip() not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text.strip()

    return parse


def _policy(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words or not set(words) <= {"delete", "compact"} or len(set(words)) != len(words):
        raise ValueError("delete, compact, or both")
    return words


def _version(text: str) -> str:
    if not text.strip()[:1].isdigit():
        raise ValueError("a release of Kafka, such as 3.0-IV1")
    return text.strip()


def _gzip_level(text: str) -> int:
    level = _number(-1, 9)(text)
    if level == 0:
        raise ValueError("-1, or a number from 1 to 9")
    return level


def _throttled(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        partition, colon, broker = word.partition(":")
        if word != "*" and not (colon and partition.isdecimal() and broker.isdecimal()):
            raise ValueError("PARTITION:BROKER,… or *")
    return words


_UNUSED = "Accepted, without effect here."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log. A field's name is the setting's, with underscores for dots."""

    cleanup_policy: tuple[str, ...] = _setting(
        ("delete",),
        LIST,
        _policy,
        "What becomes of old records: delete whole "
        "segments by age or size, compact to the last record of each key, or both.",
    )
    retention_ms: int = _long(604_800_000, "Segments whose newest record is older go; -1: never.", -1)
    retention_bytes: int = _long(-1, "Oldest segments go while a partition is larger; -1: no limit.", -1)
    segment_bytes: int = _int(1 << 30, "A segment that would grow larger is followed by a new one.", 14)
    segment_ms: int = _long(
        604_800_000,
        "A segment whose first record is older is followed by a new one at the next append.",
        1,
        "log.roll.ms",
    )
    segment_jitter_ms: int = _long(
        0,
        "At most so much, by chance, is taken off segment.ms, so that not all partitions roll at once.",
        0,
        "log.roll.jitter.ms",
    )
    segment_index_bytes: int = _int(10 << 20, "Largest index of a segment.", 4, "log.index.size.max.bytes")
    index_interval_bytes: int = _int(4096, "How far apart entries of the index are.", 0)
    max_message_bytes: int = _int(1_048_588, "Largest batch of records taken.", 0, "message.max.bytes")
    message_timestamp_type: str = _setting(
        "CreateTime",
        STRING,
        _one_of("CreateTime", "LogAppendTime"),
        "Whose time a record has: its producer's, or the broker's at the append.",
    )
    message_timestamp_before_max_ms: int = _long(FOREVER, "How far a record's time may lie back.", 0)
    message_timestamp_after_max_ms: int = _long(FOREVER, "How far a record's time may lie ahead.", 0)
    message_timestamp_difference_max_ms: int = _long(FOREVER, "Older name for both of the above. " + _UNUSED, 0)
    compression_type: str = _setting(
        "producer",
        STRING,
        _one_of(*_CODECS),
        "Codec batches are stored in; producer: as they come.",
        "compression.type",
    )
    compression_gzip_level: int = _setting(
        -1, INT, _gzip_level, "Level of gzip, where the broker compresses.", "compression.gzip.level"
    )
    compression_lz4_level: int = _int(9, "Level of lz4, where the broker compresses.", 1, "compression.lz4.level", 17)
    compression_zstd_level: int = _int(
        3, "Level of zstd, where the broker compresses.", -131_072, "compression.zstd.level", 22
    )
    min_cleanable_dirty_ratio: float = _setting(
        0.5,
        DOUBLE,
        _ratio,
        "A log is compacted when more than this share of it is new.",
        "log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms: int = _long(
        0, "Records younger than this are not compacted.", 0, "log.cleaner.min.compaction.lag.ms"
    )
    max_compaction_lag_ms: int = _long(
        FOREVER, "Records older than this are compacted, however few are new.", 1, "log.cleaner.max.compaction.lag.ms"
    )
    delete_retention_ms: int = _long(
        86_400_000,
        "How long a deleted key's tombstone is kept, so that readers see it.",
        0,
        "log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms: int = _long(
        60_000, "How long files are kept after they were taken out of use.", 0, "log.segment.delete.delay.ms"
    )
    flush_messages: int = _long(
        FOREVER, "Force a partition to disk after so many records.", 1, "log.flush.interval.messages"
    )
    flush_ms: int = _long(
        FOREVER, "Force a partition to disk when its last flush is so long ago.", 0, "log.flush.interval.ms"
    )
    min_insync_replicas: int = _int(1, "Fewest replicas in sync for acks=all.", 1, "min.insync.replicas")
    unclean_leader_election_enable: bool = _bool(
        False,
        "Let a replica that is behind become leader, and records be lost, rather than wait.",
        "unclean.leader.election.enable",
    )
    preallocate: bool = _bool(False, "Give a segment's file its full size at once. " + _UNUSED)
    message_downconversion_enable: bool = _bool(True, _UNUSED)
    message_format_version: str = _setting("3.0-IV1", STRING, _version, _UNUSED)
    leader_replication_throttled_replicas: tuple[str, ...] = _setting(
        (), LIST, _throttled, "Replicas whose leader sends at the throttled rate.", None
    )
    follower_replication_throttled_replicas: tuple[str, ...] = _setting(
        (), LIST, _throttled, "Replicas that fetch at the throttled rate.", None
    )
    remote_storage_enable: bool = _setting(False, BOOLEAN, _only_false, "There is no remote storage here.", None)
    remote_log_copy_disable: bool = _bool(False, _UNUSED, None)
    remote_log_delete_on_disable: bool = _bool(False, _UNUSED, None)
    local_retention_ms: int = _long(-2, _UNUSED, -2)
    local_retention_bytes: int = _long(-2, _UNUSED, -2)

    def __post_init__(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms={self.min_compaction_lag_ms} is more than "
                f"max.compaction.lag.ms={self.max_compaction_lag_ms}: such a record could never be compacted"
            )

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    def draw_roll_ms(self) -> int:
        """How long a segment may grow: ``segment.ms``, less a random part of ``segment.jitter.ms`` drawn for each.

        Without it the segments of all partitions made together would roll together.
        """
        jitter = min(self.segment_jitter_ms, self.segment_ms)
        return self.segment_ms - (random.randrange(jitter) if jitter else 0)

    def with_overrides(self, settings: Mapping[str, str]) -> LogConfig:
        """These settings with some changed, given as text; raises ConfigError naming what cannot be."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, text in settings.items():
            values[name.replace(".", "_")] = parse_setting(name, text)
        return LogConfig(**values)

    def as_text(self) -> dict[str, str]:
        """Every setting by its name."""
        return {field.name.replace("_", "."): _text(getattr(self, field.name)) for field in fields(self)}


@cache
def topic_settings() -> dict[str, TopicSetting]:
    """Every setting a topic may have, by name."""
    found = {}
    for each in fields(LogConfig):
        name, declared = each.name.replace("_", "."), each.metadata
        of_broker = f"log.{name}" if declared["of_broker"] == "" else declared["of_broker"]
        found[name] = TopicSetting(name, declared["type"], each.default, declared["parse"], declared["help"], of_broker)
    return found


def setting_names() -> list[str]:
    """The names of all settings."""
    return sorted(topic_settings())


def parse_setting(name: str, text: str) -> Any:
    """The value a text stands for; raises ConfigError if there is no such setting, or it cannot have it."""
    declared = topic_settings().get(name)
    if declared is None:
        raise ConfigError(f"{name!r} is no setting of a topic; there are: {', '.join(setting_names())}")
    try:
        return declared.parse(text)
    except ValueError as error:
        raise ConfigError(f"{name}={text!r}: it must be {error}") from error


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)
