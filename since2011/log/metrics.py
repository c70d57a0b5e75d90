"""The numbers of the modern logs under their Prometheus names, each declared once, here.

``docs/metrics.md`` lists them; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from since2011.log.log import ModernLog
from since2011.log.manager import LogManager
from since2011.log.open_files import OPEN_FILES

PREFIX = "kafka2011_modern_"


class OfLogs(NamedTuple):
    """A number of every partition."""

    name: str
    text: str
    value: Callable[[ModernLog], float]


class OfAll(NamedTuple):
    """A number of all logs together; ``counts``: it only grows."""

    name: str
    text: str
    value: Callable[[LogManager], float]
    counts: bool = False


PARTITIONS = (
    OfLogs("log_start_offset", "offset of the oldest record kept", lambda log: log.log_start_offset),
    OfLogs("high_watermark", "end of what consumers can read", lambda log: log.high_watermark),
    OfLogs("log_end_offset", "end of what is written", lambda log: log.log_end_offset),
    OfLogs("unflushed_offsets", "offsets that a power cut may cost", lambda log: log.n_unflushed),
    OfLogs("log_size_bytes", "bytes kept", lambda log: log.size),
    OfLogs("segments", "segments", lambda log: len(log.segments)),
    OfLogs("producers", "producers remembered", lambda log: len(log.producers.producers)),
)
ALL = (
    OfAll("offline_log_directories", "log directories whose disk failed",
          lambda m: sum(d.failed is not None for d in m.directories)),
    OfAll("offline_partitions", "partitions that are not served", lambda m: len(m.offline)),
    OfAll("closed_partitions", "partitions that take no appends because of damage",
          lambda m: sum(log.failed is not None for log in m.logs())),
    OfAll("cleaner_rounds", "logs cleaned", lambda m: m.cleaner.n_rounds, True),
    OfAll("cleaner_read_bytes", "bytes read while cleaning", lambda m: m.cleaner.bytes_read, True),
    OfAll("cleaner_saved_bytes", "bytes less after cleaning", lambda m: m.cleaner.bytes_saved, True),
    OfAll("uncleanable_partitions", "partitions whose cleaning failed", lambda m: len(m.cleaner.uncleanable)),
    OfAll("open_files", "files of modern logs that are open", lambda m: len(OPEN_FILES)),
)  # fmt: skip


class LogCollector(Collector):
    """Turn logs into metric families, at the moment somebody asks."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager

    def collect(self) -> Iterable[Metric]:
        """Every metric of the modern logs."""
        logs = self._manager.logs()
        for of in PARTITIONS:
            family = GaugeMetricFamily(PREFIX + of.name, of.text, labels=["topic", "partition"])
            for log in logs:
                family.add_metric([log.topic, str(log.partition)], of.value(log))
            yield family
        for of_all in ALL:
            kind = CounterMetricFamily if of_all.counts else GaugeMetricFamily
            yield kind(PREFIX + of_all.name, of_all.text, value=of_all.value(self._manager))
