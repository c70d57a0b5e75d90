"""How a reader fetches, by the names and defaults of Kafka's own consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kafka2011.errors import ConfigError

EARLIEST, LATEST = -2, -1
"""Times that ListOffsets knows by name."""

_RESETS = {
    "earliest": EARLIEST,
    "smallest": EARLIEST,
    "beginning": EARLIEST,
    "latest": LATEST,
    "largest": LATEST,
    "end": LATEST,
    "none": None,
    "error": None,
    "raise": None,
}
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
_POSITIVE = ("fetch_max_bytes", "max_partition_fetch_bytes", "request_timeout_ms")
_NOT_NEGATIVE = ("fetch_min_bytes", "fetch_max_wait_ms", "retry_backoff_ms", "metadata_max_age_ms")


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Milliseconds and bytes."""

    auto_offset_reset: str = "latest"
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    check_crcs: bool = True
    allow_auto_create_topics: bool = True
    client_id: str = "kafka2011"
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 5_000
    """How soon new topics and partitions are seen; Kafka's own default is five minutes."""

    def __post_init__(self) -> None:
        if self.auto_offset_reset not in _RESETS:
            raise ConfigError(f"auto_offset_reset is {self.auto_offset_reset!r}: earliest, latest or none")
        if self.isolation_level not in _ISOLATION:
            raise ConfigError(f"isolation_level is {self.isolation_level!r}: read_uncommitted or read_committed")
        for name in _POSITIVE + _NOT_NEGATIVE:
            least = 1 if name in _POSITIVE else 0
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; the least is {least}")
        if self.fetch_max_wait_ms >= self.request_timeout_ms:
            raise ConfigError(
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}) must be less than request_timeout_ms "
                f"({self.request_timeout_ms}): a broker that waits would be taken for dead"
            )

    @property
    def reset_to(self) -> int | None:
        """The time to look up where there is no position; None: the application decides."""
        return _RESETS[self.auto_offset_reset]

    @property
    def isolation(self) -> int:
        """The isolation level as requests have it."""
        return _ISOLATION[self.isolation_level]
