"""What a monitor asks the observatory: how far behind each group is. Prometheus text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from classroom.observatory.frames import Frame
from classroom.observatory.view import places


def exposition(frame: Frame) -> str:
    """Lag in bytes per group and partition, and the number of partitions nobody owns."""
    registry = CollectorRegistry()
    lag = Gauge(
        "kafka2011_group_lag_bytes",
        "Flushed bytes behind the stored offset",
        ["group", "topic", "partition"],
        registry=registry,
    )
    orphans = Gauge("kafka2011_group_partitions_without_owner", "Partitions nobody reads", ["group"], registry=registry)
    for group in frame["groups"]:
        rows = places(group, frame)
        orphans.labels(group).set(sum(row["owner"] is None for row in rows))
        for row in rows:
            if row["lag"] is not None:
                lag.labels(group, row["topic"], row["partition"]).set(row["lag"])
    return generate_latest(registry).decode()
