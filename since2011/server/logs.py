"""The modern logs on a broker: their settings, and opening and closing them in threads.

    start    every log is opened (after a crash read through) -> upkeep begins
    stop     upkeep ends -> every log is flushed and closed, and the mark of a clean stop is left

Settings have the names real Kafka gives them; what a topic may override is in ``since2011.log.settings``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.registry import Collector
from twisted.internet.threads import deferToThread

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError
from kafka2011.events import Journal
from since2011.log.identity import Identity
from since2011.log.log import ModernLog
from since2011.log.log_cleaner import CleanerSettings
from since2011.log.log_directory import BELOW_LOG_DIR
from since2011.log.manager import LogManager
from since2011.log.metrics import LogCollector
from since2011.log.settings import LogConfig
from since2011.log.upkeep import Upkeep, UpkeepSettings

_SECTION = "modern logs (not in 2011)"


def _ms(name: str, default: int, help: str, minimum: int = 1) -> Setting:
    return Setting(name, int, default, "ms", help, _SECTION, minimum=minimum)


SETTINGS: tuple[Setting, ...] = (
    Setting("log.dirs", str, None, "", "Directories of the modern logs, with commas between them, each on a disk of "
            "its own; never those of 2011 topics. Unset: .modern/logs below log.dir.", _SECTION),
    _ms("log.flush.scheduler.interval.ms", 1_000, "How often to look for modern logs to flush by flush.ms, and for "
        "segments that are full."),
    _ms("log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are written down: what lies "
        "below is not read through after a crash."),
    _ms("replica.high.watermark.checkpoint.interval.ms", 5_000, "How often high watermarks are written down."),
    _ms("log.retention.check.interval.ms", 300_000, "How often modern logs are looked at for old segments."),
    _ms("log.initial.task.delay.ms", 30_000, "How long after the start the first look is.", 0),
    Setting("log.cleaner.enable", bool, True, "", "Compact topics with cleanup.policy=compact.", _SECTION),
    _ms("log.cleaner.backoff.ms", 15_000, "How long the cleaner rests when nothing is dirty enough."),
    Setting("log.cleaner.dedupe.buffer.size", int, 128 << 20, "bytes", "Memory of the cleaner for keys, about 200 "
            "bytes each; where there are more, it cleans in several rounds.", _SECTION, minimum=1 << 10),
    Setting("log.cleaner.io.max.bytes.per.second", float, float(2**63), "bytes", "Most the cleaner reads in a second; "
            "it never works more than a quarter of the time.", _SECTION),
)  # fmt: skip


def log_dirs(config: Config) -> list[Path]:
    """The directories of the modern logs. Raises ConfigError if one of them is the 2011 log's."""
    below, text = config.get("log.dir", Path), config["log.dirs"]
    if text is None:
        return [below / BELOW_LOG_DIR]
    found = [Path(word.strip()).expanduser().resolve() for word in str(text).split(",") if word.strip()]
    if not found or len(set(found)) != len(found):
        raise ConfigError(f"log.dirs={text!r}: it must name directories, each once, with commas between them")
    if below.resolve() in found:
        raise ConfigError(
            f"log.dirs={text!r} holds log.dir ({below}), where the 2011 topics are: the modern logs need directories "
            "of their own"
        )
    return found


class ModernLogs:
    """The logs of a running broker. Thread: reactor; what takes long runs in threads."""

    def __init__(
        self,
        config: Config,
        identity: Identity,
        config_of: Callable[[str], LogConfig],
        *,
        journal: Journal,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        cleaner = CleanerSettings(
            dedupe_buffer_size=config.integer("log.cleaner.dedupe.buffer.size"),
            io_max_bytes_per_second=config.get("log.cleaner.io.max.bytes.per.second", float),
        )
        self.manager = LogManager(
            log_dirs(config),
            identity,
            config_of,
            clock=clock,
            journal=journal,
            cleaner=cleaner,
            producer_expiration_ms=config.integer("producer.id.expiration.ms"),
        )
        self._upkeep = Upkeep(self.manager, _upkeep(config))
        self._running = False

    async def start(self) -> None:
        """Open everything."""
        await deferToThread(self.manager.start)
        self._upkeep.start()
        self._running = True

    async def stop(self) -> None:
        """Close everything; nobody appends any more."""
        if self._running:
            self._running = False
            await deferToThread(self._close)

    def _close(self) -> None:
        self._upkeep.stop()
        self.manager.close()

    def collectors(self) -> list[Collector]:
        """Their metrics."""
        return [LogCollector(self.manager)]

    def state(self) -> dict[str, dict[str, Any]]:
        """Topic -> partition -> ends, files and their indexes, for whoever looks from outside."""
        found: dict[str, dict[str, Any]] = {}
        for log in self.manager.logs():
            found.setdefault(log.topic, {})[str(log.partition)] = _shown(log)
        return found

    def trouble(self) -> str | None:
        """What a person should look at, in a line; None if there is nothing."""
        failed = [f"{d} failed: {d.failed}" for d in self.manager.directories if d.failed is not None]
        closed = [f"{log} takes no appends: {log.failed}" for log in self.manager.logs() if log.failed is not None]
        offline = [str(error) for error in self.manager.offline.values()]
        found = [*failed, *(offline if not failed else []), *closed]
        return None if not found else found[0] if len(found) == 1 else f"{found[0]} (and {len(found) - 1} more)"


def _shown(log: ModernLog) -> dict[str, Any]:
    with log.lock:
        segments, end = list(log.segments), log.log_end_offset
    ends = [segment.base_offset for segment in segments[1:]] + [end]
    return {
        "start": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "end": end,
        "flushed": log.recovery_point,
        "cleanup": ",".join(log.config.cleanup_policy),
        "segments": [
            {
                "start": segment.base_offset,
                "end": after,
                "size": segment.size,
                "index": len(segment.index.positions),
                "time_index": len(segment.time_index.times),
            }
            for segment, after in zip(segments, ends, strict=True)
        ],
    }


def _upkeep(config: Config) -> UpkeepSettings:
    def seconds(name: str) -> float:
        return config.integer(name) / 1000

    return UpkeepSettings(
        flush_s=seconds("log.flush.scheduler.interval.ms"),
        checkpoint_s=seconds("log.flush.offset.checkpoint.interval.ms"),
        high_watermark_s=seconds("replica.high.watermark.checkpoint.interval.ms"),
        retention_s=seconds("log.retention.check.interval.ms"),
        cleaner_backoff_s=seconds("log.cleaner.backoff.ms"),
        initial_delay_s=seconds("log.initial.task.delay.ms"),
        cleaner_enabled=config["log.cleaner.enable"] is True,
    )
