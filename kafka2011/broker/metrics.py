"""The broker's numbers under their Prometheus names: ``kafka2011_broker_<what>_<unit>[_total]``.

Labels are topic and partition, whose number is limited by ``max.topics``; never a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kafka2011.broker.counters import Histogram

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "kafka2011_broker_"


class BrokerCollector(Collector):
    """Turn counters and logs into metric families, at the moment somebody asks."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterable[Metric]:
        """Every metric of the broker."""
        broker, counters = self._broker, self._broker.counters
        yield _gauge("connections", "open connections", len(broker.limits))
        yield _gauge("offline_partitions", "partitions whose damaged log is not served", len(broker.store.offline))
        n_missing = sum(map(len, list(broker.store.missing.values())))
        yield _gauge("missing_files", "files of flushed bytes that are gone, not by retention", n_missing)
        full = broker.store.no_room is not None
        yield _gauge("no_room", "1 while the disk has no room for the broker's own notes", full)
        yield _gauge("partial_requests_bytes", "half-received requests", broker.limits.partial_bytes)
        yield _counter("connections_opened", "connections accepted", counters.connections_opened)
        yield _by("connections_closed", "connections the broker closed itself", "reason", counters.closed)
        yield _by("requests", "requests run", "request", counters.requests)
        yield _by("dropped_sets", "message sets not appended", "reason", counters.dropped)
        yield _by("fetched_bytes", "message bytes sent to consumers", "path", counters.sent_bytes)
        yield _counter("handler_errors", "requests that met an unforeseen error", counters.handler_errors)
        yield _counter("flush_failures", "flushes the disk refused", counters.flush_failures)
        yield _counter("reactor_late", "times the network thread stood still for a second", counters.reactor_late)
        yield _histogram("flush_seconds", "time of one flush", counters.flush_seconds)
        yield from self._topics()
        yield from self._partitions()

    def _topics(self) -> Iterator[Metric]:
        families = {
            "appended_messages": "messages appended",
            "appended_bytes": "bytes appended",
            "topic_fetched_bytes": "bytes of fetch answers begun",
            "topic_dropped_sets": "message sets not appended",
            "topic_failed_fetches": "fetches answered with an error",
        }
        for name, text in families.items():
            family = CounterMetricFamily(_PREFIX + name, text, labels=["topic"])
            for topic, counts in sorted(self._broker.counters.topics.items()):
                family.add_metric([topic], getattr(counts, name.removeprefix("topic_")))
            yield family

    def _partitions(self) -> Iterator[Metric]:
        labels = ["topic", "partition"]
        first = GaugeMetricFamily(_PREFIX + "first_offset", "offset of the oldest byte kept", labels=labels)
        flushed = GaugeMetricFamily(_PREFIX + "flushed_offset", "end of what consumers can read", labels=labels)
        end = GaugeMetricFamily(_PREFIX + "end_offset", "end of what is written", labels=labels)
        size = GaugeMetricFamily(_PREFIX + "log_size_bytes", "bytes kept", labels=labels)
        segments = GaugeMetricFamily(_PREFIX + "segments", "segment files", labels=labels)
        for log in self._broker.store.logs():
            place = [log.topic, str(log.partition)]
            first.add_metric(place, log.first_offset)
            flushed.add_metric(place, log.flushed_offset)
            end.add_metric(place, log.end_offset)
            size.add_metric(place, log.size)
            segments.add_metric(place, len(log.segments()))
        yield from (first, flushed, end, size, segments)


def exposition(broker: Broker) -> bytes:
    """The text a Prometheus server reads."""
    registry = CollectorRegistry()
    registry.register(BrokerCollector(broker))
    for plugin in broker.plugins.values():
        for collector in plugin.collectors():
            registry.register(collector)
    return generate_latest(registry)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, text, value=value)


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
    return HistogramMetricFamily(_PREFIX + name, text, buckets=buckets, sum_value=histogram.total)
