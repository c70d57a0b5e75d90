"""From settings to the values the parts of a broker want."""

from __future__ import annotations

import resource

from kafka2011.broker.limits import LimitSettings
from kafka2011.config import Config
from kafka2011.log.settings import HOUR_MS, LogSettings


def limit_settings(config: Config, most_files: int | None = None) -> LimitSettings:
    """The limits, times in seconds. At most half of the files this process may open are for connections."""
    if most_files is None:
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return LimitSettings(
        connections=min(config.integer("max.connections"), max(1, most_files // 2)),
        per_address=config.integer("max.connections.per.address"),
        first_byte_s=config.integer("connection.first.byte.ms") / 1000,
        frame_s=config.integer("connection.frame.ms") / 1000,
        idle_s=config.integer("connection.idle.ms") / 1000,
        in_flight_bytes=config.integer("max.frames.in.flight.bytes"),
    )


def log_settings(config: Config) -> LogSettings:
    """The settings of all logs, times in milliseconds."""

    def hours(name: str) -> dict[str, int]:
        return {topic: value * HOUR_MS for topic, value in config.topic_map(name).items()}

    return LogSettings(
        num_partitions=config.integer("num.partitions"),
        topic_partitions=config.topic_map("topic.partition.count.map"),
        file_size=config.integer("log.file.size"),
        topic_file_size=config.topic_map("topic.log.file.size"),
        roll_ms=config.integer("log.roll.hours") * HOUR_MS,
        topic_roll_ms=hours("topic.log.roll.hours"),
        flush_messages=config.integer("log.flush.interval"),
        flush_interval_ms=config.integer("log.default.flush.interval.ms"),
        topic_flush_interval_ms=config.topic_map("topic.flush.intervals.ms"),
        retention_ms=config.integer("log.retention.hours") * HOUR_MS,
        topic_retention_ms=hours("topic.log.retention.hours"),
        retention_size=config.integer("log.retention.size"),
        topic_retention_size=config.topic_map("topic.log.retention.size"),
        max_topics=config.integer("max.topics"),
        max_partitions=config.integer("max.partitions"),
        max_topic_name_length=config.integer("max.topic.name.length"),
        corrupt_policy="truncate" if config["log.corrupt.policy"] == "truncate" else "offline",
    )
