"""What the page costs: one broker with 1,000 partitions, 50 groups that own and have read all of them, one page open.

    python -m benchmarks.observatory            about two minutes

Prints how long each pane takes to be made and how large it is, how often the page is refreshed, the broker's
processor time with and without the page, and what the page takes from a producer that sends as fast as it can.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil
from kazoo.client import KazooClient

from classroom.cluster.cli import observatory_process
from classroom.cluster.cluster import Cluster, Size
from kafka2011.client import BrokerConnection
from kafka2011.wire import encode_set

TOPIC = "clicks"
PANES = ("segments", "zookeeper", "ownership", "groups", "brokers")


def register_groups(connect: str, groups: int, partitions: int) -> KazooClient:
    """Fifty groups as their consumers would have left them; the ephemeral nodes live as long as the client."""
    client = KazooClient(connect, timeout=60)
    client.start()
    for g in range(groups):
        group = f"/consumers/group-{g}"
        members = [f"group-{g}_host-{m}" for m in range(4)]
        for path in (f"{group}/ids", f"{group}/owners/{TOPIC}", f"{group}/offsets/{TOPIC}"):
            client.ensure_path(path)
        waiting = [client.create_async(f"{group}/ids/{m}", b'{"clicks": 1}', ephemeral=True) for m in members]
        for p in range(partitions):
            owner = f"{members[p % 4]}-0".encode()
            waiting.append(client.create_async(f"{group}/owners/{TOPIC}/0-{p}", owner, ephemeral=True))
            waiting.append(client.create_async(f"{group}/offsets/{TOPIC}/0-{p}", b"0"))
        for result in waiting:
            result.get(timeout=60)
    return client


def follow(address: str, over: threading.Event, times: list[float]) -> None:
    """An open page: read the stream of views, note when each came."""
    with urllib.request.urlopen(f"{address}api/stream?pane=ownership&group=group-7", timeout=60) as stream:
        for line in stream:
            if over.is_set():
                return
            if line.startswith(b"data: "):
                times.append(time.monotonic())


def processor_share(pid: int, seconds: float) -> float:
    """The share of one core that a process uses, in per cent."""
    process = psutil.Process(pid)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    return 100 * (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)


def publish(address: tuple[str, int], messages: int) -> float:
    """Messages a second into one partition, from the first to the last one flushed."""
    data = encode_set([b"x" * 200] * 200)
    with BrokerConnection(*address) as connection:
        (start,) = connection.offsets("load", 0)
        began = time.perf_counter()
        for _ in range(messages // 200):
            connection.produce("load", 0, data)
        while connection.offsets("load", 0) != [start + len(data) * (messages // 200)]:
            time.sleep(0.002)
        return messages / (time.perf_counter() - began)


def under_load(address: tuple[str, int], broker: int, page: int, rounds: int = 9, messages: int = 600_000) -> None:
    """Publish with the page running and with it stopped in turn; print both and the ratio."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    process = psutil.Process(broker)
    publish(address, messages)
    for number in range(2 * rounds):
        # Watched and alone, then alone and watched: what drifts meanwhile falls on both.
        watched = number % 4 in (0, 3)
        os.kill(page, signal.SIGCONT if watched else signal.SIGSTOP)
        before = sum(process.cpu_times()[:2])
        rates[watched].append(publish(address, messages))
        costs[watched].append(1e6 * (sum(process.cpu_times()[:2]) - before) / messages)
    os.kill(page, signal.SIGCONT)
    for name, found, unit in (("published", rates, "msg/s"), ("broker's cost", costs, "us CPU a message")):
        alone, watched_ = statistics.median(found[False]), statistics.median(found[True])
        print(f"{name:<16} {alone:,.2f} alone, {watched_:,.2f} watched {unit}: {watched_ / alone:.3f}")


def main() -> None:
    """Set the scene, measure without the page, open it, measure again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        size = Size(zookeepers=1, brokers=1, partitions=wanted.partitions)
        cluster = Cluster(Path(directory), size, with_parent=True, any_ports=True)
        try:
            cluster.up()
            measure(cluster, wanted)
        finally:
            cluster.down()


def measure(cluster: Cluster, wanted: argparse.Namespace) -> None:
    """All figures, printed."""
    (broker,) = cluster.processes.of_kind("broker")
    with BrokerConnection(broker.ready["host"], broker.ready["port"]) as connection:
        for p in range(wanted.partitions):
            connection.produce(TOPIC, p, encode_set([b"x" * 100] * 10))
    client = register_groups(cluster.zookeeper, wanted.groups, wanted.partitions)
    print(f"{wanted.partitions:,} partitions, {wanted.groups} groups, {2 * wanted.partitions * wanted.groups:,} nodes")
    alone = processor_share(broker.pid, wanted.seconds)
    page = cluster.start(observatory_process(cluster))
    address = f"http://127.0.0.1:{page.ready['port']}/"
    over, times = threading.Event(), list[float]()
    threading.Thread(target=follow, args=(address, over, times), daemon=True).start()
    deadline = time.monotonic() + 120
    while len(times) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    came = len(times)
    watched = processor_share(broker.pid, wanted.seconds)
    print(f"broker alone     {alone:5.1f} % of a core")
    print(f"broker watched   {watched:5.1f} % of a core")
    print(f"a new view every {wanted.seconds / max(len(times) - came, 1):5.1f} s")
    for pane in PANES:
        took = []
        question = f"{address}api/view?pane={pane}&group=group-7&topic={TOPIC}"
        for _ in range(5):
            began = time.monotonic()
            with urllib.request.urlopen(question, timeout=60) as view:
                body = view.read()
            took.append(time.monotonic() - began)
        assert json.loads(body)["groups"]
        print(f"{pane:<16} {1000 * sorted(took)[2]:5.0f} ms  {len(body) / 1024:7.0f} KB")
    under_load((broker.ready["host"], broker.ready["port"]), broker.pid, page.pid)
    print(f"the page's memory {psutil.Process(page.pid).memory_info().rss / 2**20:.0f} MB")
    over.set()
    client.stop()


if __name__ == "__main__":
    main()
