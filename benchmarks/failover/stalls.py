"""How long nobody is acknowledged when a broker dies or stops, and what replicas cost: ours, or a real Kafka 3.9.

    python -m benchmarks.failover.stalls                    ours
    python -m benchmarks.failover.stalls --system real      three real brokers in ZooKeeper mode, the same way
    python -m benchmarks.failover.stalls --rates            acks=all with three replicas against one

One writer (librdkafka, acks=all) sends without a pause to partitions that each broker leads. A broker is killed, or
stopped as an administrator would; the wait is the longest time between two acknowledgements, for partitions the victim
led and for those others led. ZooKeeper's tick is 500 ms, sessions last 6 s.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from confluent_kafka import Producer

from benchmarks.failover.clients import Writer
from benchmarks.failover.cluster import Cluster
from benchmarks.failover.real import RealCluster

TOPIC = "stalls"
N_PARTITIONS = 3
WATCH_S = 14.0


def shown(waits: list[float]) -> str:
    """Median and worst, in seconds."""
    return f"p50 {statistics.median(waits):5.2f} s, worst {max(waits):5.2f} s ({len(waits)})"


def measure(cluster: Cluster | RealCluster, strike: Callable[[int], None], heal: Callable[[int], None], n: int) -> None:
    """Strike ``n`` times, and tell how long was waited."""
    led, others, failed = [], [], 0
    for number in range(n):
        victim = number % 3
        over = threading.Event()
        writer = Writer(f"w{number}", cluster.bootstrap, TOPIC, N_PARTITIONS, over)
        writer.start()
        time.sleep(3.0)
        leaders = [cluster.leader(TOPIC, index).leader for index in range(N_PARTITIONS)]
        began = time.monotonic()
        strike(victim)
        time.sleep(max(0.0, began + WATCH_S - time.monotonic()))
        over.set()
        writer.join()
        failed += writer.failed.total()
        for index, leader in enumerate(leaders):
            wait = writer.longest_wait(index, began - 0.5, began + WATCH_S - 1.0)
            (led if leader == victim else others).append(wait)
        heal(victim)
        cluster.wait_whole(TOPIC, N_PARTITIONS, 3)
        cluster.prefer(TOPIC, N_PARTITIONS)
    click.echo(f"   led by the victim {shown(led)}" if led else "   the victim led nothing")
    click.echo(f"   led by others     {shown(others)}")
    click.echo(f"   not acknowledged  {failed}")


def rate(bootstrap: str, topic: str, seconds: float) -> float:
    """Values of 1,000 bytes acknowledged in a second."""
    n_acked = 0

    def told(error: object, _: object) -> None:
        nonlocal n_acked
        n_acked += error is None

    settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, "log_level": 0}
    producer = Producer(settings | {"queue.buffering.max.messages": 20_000})
    value, until = b"v" * 1000, time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            producer.produce(topic, value, partition=0, on_delivery=told)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    found = n_acked / seconds
    producer.flush(60)
    return found


@click.command()
@click.option("--system", default="ours", show_default=True, type=click.Choice(["ours", "real"]))
@click.option("--times", default=6, show_default=True)
@click.option("--rates", is_flag=True)
@click.option("--only", type=click.Choice(["kill", "stop"]))
def main(system: str, times: int, rates: bool, only: str | None) -> None:
    """Measure one system."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-stalls-") as place, ExitStack() as stack:
        cluster: Cluster | RealCluster
        cluster = Cluster(Path(place), stack, 1) if system == "ours" else RealCluster(Path(place), stack)
        if rates:
            for n_replicas in (1, 3, 1, 3):
                topic = f"rate-{n_replicas}-{time.monotonic_ns()}"
                cluster.create(topic, 1, n_replicas, 1)
                rate(cluster.bootstrap, topic, 3.0)
                click.echo(f"{system}: {n_replicas} replicas {rate(cluster.bootstrap, topic, 10.0):10,.0f} per second")
            return
        cluster.create(TOPIC, N_PARTITIONS, 3, 2)
        if only != "stop":
            click.echo(f"{system}: kill -9")
            measure(cluster, lambda n: cluster.brokers[n].kill(), lambda n: cluster.revive(n), times)
        if only != "kill":
            click.echo(f"{system}: orderly stop")
            measure(cluster, lambda n: cluster.halt(n), lambda n: cluster.revive(n), times)


if __name__ == "__main__":
    main()
