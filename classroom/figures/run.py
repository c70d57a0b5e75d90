"""One live run for several pictures: a small cluster whose group goes through four generations.

    generation 1   one consumer reads everything
    generation 2   a second one joins
    generation 3   a third one joins
    generation 4   the first is killed; its session ends, the others take over

A frame of the observatory is kept every quarter of a second; nothing in the pictures comes from anywhere else.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from classroom.cluster.cluster import Cluster, Size
from classroom.cluster.processes import Process
from classroom.observatory.collector import Collector
from classroom.observatory.frames import Film, Frame
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from kafka2011.producer import Producer
from kafka2011.producer.routing import zookeeper_router
from zk_registry.session import ZooKeeperSession

TOPIC = "page_views"
GROUP = "newsfeed"
EVERY_S = 0.25
SETTLED_S = 4.0
"""How long a generation is watched once it has settled."""
PATIENCE_S = 60.0
_SETTINGS = ("log.file.size=16384", "log.flush.interval=100000", "log.default.flush.interval.ms=1500")


class NotSettled(Kafka2011Error):
    """The group did not come to rest in time; nothing was drawn."""


@dataclass(frozen=True, slots=True)
class Run:
    """What was seen: every frame, and where each generation began (its change) and had settled."""

    film: Film
    changes: tuple[tuple[int, str], ...]
    """Moment and name of each change: who came, who was killed."""
    settled: tuple[int, ...]


def live_run(say: Callable[[str], None] = lambda text: None) -> Run:
    """About a minute with a real ZooKeeper, two brokers and three consumers."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-figures-") as directory:
        place = Path(directory)
        size = Size(zookeepers=1, brokers=2, partitions=2)
        cluster = Cluster(place, size, settings=_SETTINGS, with_parent=True, any_ports=True)
        try:
            cluster.up()
            say("a cluster of two brokers runs; four generations of its group follow …")
            return _Watched(place, cluster, say).generations()
        finally:
            cluster.down()


class _Watched:
    """A cluster, a producer and the film of both. Thread: one."""

    def __init__(self, place: Path, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._place, self._cluster, self._say = place, cluster, say
        self._film = Film()
        self._over = threading.Event()

    def generations(self) -> Run:
        session = ZooKeeperSession(self._cluster.zookeeper)
        session.start()
        collector = Collector(
            session, self._film.append, wanted=lambda: {GROUP}, cluster_dir=self._place, every_s=EVERY_S
        )
        publishing = threading.Thread(target=self._publish, daemon=True)
        collector.start()
        publishing.start()
        try:
            return self._go_through()
        finally:
            self._over.set()
            publishing.join()
            collector.stop()
            session.close()

    def _go_through(self) -> Run:
        changes: list[tuple[int, str]] = []
        settled: list[int] = []
        names = ["consumer-0", "consumer-1", "consumer-2"]
        steps = [(f"{name} joins", names[: n + 1]) for n, name in enumerate(names)]
        steps.append(("consumer-0 is killed", names[1:]))
        self._until(lambda frame: len(frame["topics"].get(TOPIC, {})) == 4, "the topic is on both brokers")
        for says, members in steps:
            changes.append((SYSTEM_CLOCK.wall_ms(), says))
            if "killed" in says:
                self._cluster.processes.send("consumer-0", signal.SIGKILL)
            else:
                self._cluster.start(self._reader(members[-1]))
            frame = self._until(partial(_shared_by, len(members)), says)
            settled.append(int(frame["t"]))
            self._say(f"generation {len(settled)}: {says}")
            self._watch(settled[-1] + round(SETTLED_S * 1000))
        return Run(self._film, tuple(changes), tuple(settled))

    def _reader(self, name: str) -> Process:
        common = ["--zookeeper", self._cluster.zookeeper, "--directory", str(self._place), "--group", GROUP]
        return Process(name, "consumer", ["classroom.demo.reader", *common, "--name", name])

    def _until(self, condition: Callable[[Frame], bool], what: str) -> Frame:
        deadline = SYSTEM_CLOCK.monotonic() + PATIENCE_S
        while SYSTEM_CLOCK.monotonic() < deadline:
            frame = self._film.at()
            if frame is not None and condition(frame):
                return frame
            SYSTEM_CLOCK.sleep(EVERY_S / 2)
        raise NotSettled(f"waited {PATIENCE_S:.0f} s in vain until {what}; is the machine very busy?")

    def _watch(self, until_ms: int) -> None:
        self._until(lambda frame: int(frame["t"]) >= until_ms, "a few seconds have passed")

    def _publish(self) -> None:
        number = 0
        router = zookeeper_router(self._cluster.zookeeper)
        with Producer(router, linger_ms=50, on_drop=lambda topic, n, reason: None) as producer:
            while not self._over.wait(0.05):
                for _ in range(4):
                    number += 1
                    producer.send(TOPIC, [b"page view %06d " % number + b"." * (number % 40)])


def _shared_by(n_members: int, frame: Frame) -> bool:
    """True if so many living members own all partitions among them."""
    group = frame["groups"].get(GROUP)
    if group is None:
        return False
    owners = group["owners"].get(TOPIC, {})
    whole = len(owners) == len(frame["topics"].get(TOPIC, {})) and set(owners.values()) <= set(group["members"])
    dead = set(frame["not_reading"]) & set(group["members"])
    return whole and not dead and len(set(owners.values())) == n_members
