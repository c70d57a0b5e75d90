"""What standbys cost: produce, produce acknowledged, and consume with 0, 1 and 2 of them, as ratios of one run.

    python -m benchmarks.standby_price

Each number of standbys has its turn in every round, so that what else the machine does falls on all of them; the best
round of each counts. Produced is what has become visible; consumed is fetched in requests of 1 MiB.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click

from kafka2011.client import BrokerConnection
from kafka2011.wire import AckLevel, FetchRequest, encode_set
from tests.integration.since2011.standby.logical_broker import LogicalBroker
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.testing import fresh_chroot

MEMBERS = ("a", "ab", "abc")
BATCH = encode_set([b"x" * 200] * 50)


def produce(port: int, topic: str, megabytes: int) -> float:
    """Megabytes a second until everything is visible."""
    began, n = time.perf_counter(), megabytes * 1_000_000 // len(BATCH)
    with BrokerConnection("127.0.0.1", port, timeout_s=120.0) as connection:
        for _ in range(n):
            connection.produce(topic, 0, BATCH)
        connection.produce_acked(topic, 0, BATCH, AckLevel.ALL)
    return (n + 1) * len(BATCH) / 1e6 / (time.perf_counter() - began)


def acknowledged(port: int, topic: str, n: int) -> float:
    """Batches a second, each acknowledged by all before the next is sent."""
    began = time.perf_counter()
    with BrokerConnection("127.0.0.1", port, timeout_s=120.0) as connection:
        for _ in range(n):
            connection.produce_acked(topic, 0, BATCH, AckLevel.ALL)
    return n / (time.perf_counter() - began)


def consume(port: int, topic: str) -> float:
    """Megabytes a second from the first message to the last."""
    began, offset = time.perf_counter(), 0
    with BrokerConnection("127.0.0.1", port, timeout_s=120.0) as connection:
        while data := connection.fetch_view(FetchRequest(topic, 0, offset, 1 << 20)):
            offset += len(data) - len(data) % len(BATCH) or len(data)
    return offset / 1e6 / (time.perf_counter() - began)


@click.command()
@click.option("--megabytes", default=100, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(megabytes: int, rounds: int) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-price-") as place, ExitStack() as stack:
        zookeeper = stack.enter_context(EmbeddedZooKeeper())
        brokers = {}
        for members in MEMBERS:
            connect = fresh_chroot(zookeeper.connect)
            brokers[members] = LogicalBroker(Path(place) / members, connect, members, {}, stack)
            brokers[members].in_sync(members)
        best: dict[str, dict[str, float]] = {members: {} for members in MEMBERS}
        for turn in range(rounds):
            for members, broker in brokers.items():
                port, topic = broker.port(broker.leader()), f"turn{turn}"
                found = {
                    "produce, MB/s": produce(port, topic, megabytes),
                    "acknowledged by all, batches/s": acknowledged(port, topic, 200),
                    "consume, MB/s": consume(port, topic),
                }
                best[members] = {name: max(value, best[members].get(name, 0.0)) for name, value in found.items()}
    for name, alone in best["a"].items():
        shown = ", ".join(f"{len(m) - 1} standbys {best[m][name]:,.0f} ({best[m][name] / alone:.2f})" for m in MEMBERS)
        click.echo(f"{name}: {shown}")


if __name__ == "__main__":
    main()
