"""What a topic may set, by real Kafka's names, with its defaults (Kafka 3.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kafka2011.errors import ConfigError

FOREVER = 2**63 - 1
_CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log. A field's name is the setting's, with underscores for dots."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = FOREVER
    compression_type: str = "producer"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    def with_overrides(self, settings: Mapping[str, str]) -> LogConfig:
        """These settings with some changed, given as text; raises ConfigError naming what cannot be."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, text in settings.items():
            key = name.replace(".", "_")
            if key not in values or "_" in name:
                raise ConfigError(f"{name!r} is no setting of a topic; there are: {', '.join(setting_names())}")
            values[key] = _parse(name, text)
        return LogConfig(**values)

    def as_text(self) -> dict[str, str]:
        """Every setting by its name."""
        return {field.name.replace("_", "."): _text(getattr(self, field.name)) for field in fields(self)}


def setting_names() -> list[str]:
    """The names of all settings."""
    return sorted(field.name.replace("_", ".") for field in fields(LogConfig))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _number(least: int, most: int = FOREVER) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().removeprefix("-").isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def _ratio(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return value


def _switch(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


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


_PARSERS: dict[str, Callable[[str], Any]] = {
    "cleanup.policy": _policy,
    "retention.ms": _number(-1),
    "retention.bytes": _number(-1),
    "segment.bytes": _number(14, 2**31 - 1),
    "segment.ms": _number(1),
    "segment.jitter.ms": _number(0),
    "segment.index.bytes": _number(4, 2**31 - 1),
    "index.interval.bytes": _number(0, 2**31 - 1),
    "max.message.bytes": _number(0, 2**31 - 1),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "message.timestamp.before.max.ms": _number(0),
    "message.timestamp.after.max.ms": _number(0),
    "compression.type": _one_of(*_CODECS),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _number(0),
    "max.compaction.lag.ms": _number(1),
    "delete.retention.ms": _number(0),
    "file.delete.delay.ms": _number(0),
    "flush.messages": _number(1),
    "flush.ms": _number(0),
    "min.insync.replicas": _number(1, 2**31 - 1),
    "unclean.leader.election.enable": _switch,
}


def _parse(name: str, text: str) -> Any:
    try:
        return _PARSERS[name](text)
    except ValueError as error:
        raise ConfigError(f"{name}={text!r}: it must be {error}") from error
