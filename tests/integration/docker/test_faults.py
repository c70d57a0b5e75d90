"""Drills in containers: kill a broker, pause a ZooKeeper server, cut a broker off from ZooKeeper. Nothing is lost.

Needs an engine with the images built (``make docker`` builds them); skipped by name where there is none.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import docker
from tests.waiting import until

FILE = Path(__file__).resolve().parents[3] / "docker" / "compose.yaml"
PROJECT = "kafka2011-drill"
SLOW_S = 180.0


def _engine() -> Any:
    try:
        engine = docker.from_env()
        engine.ping()
    except docker.errors.DockerException:
        pytest.skip("no Docker engine answers")
    try:
        for image in ("kafka2011/kafka2011", "kafka2011/zookeeper"):
            engine.images.get(image)
    except docker.errors.ImageNotFound as missing:
        pytest.skip(f"the images are not built (make docker): {missing.explanation}")
    return engine


class Drill:
    """A cluster in containers and what its page says of it."""

    def __init__(self, engine: Any, port: int) -> None:
        self.engine, self._page = engine, f"http://127.0.0.1:{port}"

    def container(self, service: str) -> Any:
        """The one container of a service."""
        labels = [f"com.docker.compose.project={PROJECT}", f"com.docker.compose.service={service}"]
        (found,) = self.engine.containers.list(all=True, filters={"label": labels})
        return found

    def view(self) -> dict[str, Any]:
        """The groups pane of the page; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self._page}/api/view?pane=groups&group=newsfeed", timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
        except OSError:
            return {"brokers": [], "group": None}
        return found

    def alive(self) -> set[int]:
        return {broker["id"] for broker in self.view()["brokers"] if broker["alive"]}

    def offsets(self) -> dict[str, int]:
        """How far the group has read each partition."""
        rows = (self.view()["group"] or {"partitions": []})["partitions"]
        return {f"{row['topic']} {row['partition']}": row["offset"] or 0 for row in rows}

    def reads_on(self, broker: int | None = None) -> Callable[[], bool]:
        """A condition: every partition (of one broker) that was known when it was made has been read further."""
        before = {name: offset for name, offset in self.offsets().items() if _is_on(name, broker)}
        return lambda: bool(before) and all(self.offsets().get(name, 0) > offset for name, offset in before.items())

    def delivered_without_a_gap(self) -> bool:
        """Every message the producer's brokers hold up to the stored offsets was given to the application."""
        script = (
            "from pathlib import Path; from classroom.demo.deliveries import tally; "
            "t = tally(Path('/data/deliveries').glob('newsfeed@*.txt')); import json; "
            "print(json.dumps(sorted([a, b, c] for a, b, c in t.distinct)))"
        )
        offsets = self.offsets()
        code, output = self.container("producer").exec_run(["python", "-c", script])
        assert code == 0, output
        given: dict[str, list[int]] = {}
        for topic, partition, offset in json.loads(output):
            given.setdefault(f"{topic} {partition}", []).append(offset)
        return all(self._complete(name, sorted(given.get(name, [])), end) for name, end in offsets.items() if end)

    def _complete(self, name: str, given: list[int], end: int) -> bool:
        """The messages given are those of the log: each one's offset is where the one before ends."""
        topic, partition = name.split()
        script = (
            "import sys, json; from kafka2011.client import BrokerConnection; "
            "from kafka2011.wire import decode_set\n"
            "host, topic, partition, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])\n"
            "found, offset = [], 0\n"
            "with BrokerConnection(host, 9092) as c:\n"
            "    while offset < end:\n"
            "        messages = decode_set(c.fetch(topic, partition, offset), offset)\n"
            "        found += [m.offset for m in messages]; offset = messages[-1].next_offset\n"
            "print(json.dumps([o for o in found if o < end]))"
        )
        broker, _, number = partition.partition("-")
        command = ["python", "-c", script, f"broker{broker}", topic, number, str(end)]
        code, output = self.container("producer").exec_run(command)
        assert code == 0, output
        return set(json.loads(output)) <= set(given)


def _is_on(name: str, broker: int | None) -> bool:
    return broker is None or name.split()[1].startswith(f"{broker}-")


@pytest.fixture(scope="module")
def drill() -> Iterator[Drill]:
    """The compose cluster under a project name of its own, read by its group."""
    engine = _engine()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    compose = ["docker", "compose", "-p", PROJECT, "-f", str(FILE)]
    environment = os.environ | {"KAFKA2011_PAGE_PORT": str(port)}
    down = [*compose, "down", "-v", "-t", "2"]
    started = subprocess.run(
        [*compose, "up", "-d", "--wait", "--no-build"], env=environment, capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        subprocess.run(down, env=environment, capture_output=True, check=False)
    assert started.returncode == 0, started.stderr
    drill = Drill(engine, port)
    until(lambda: len(drill.offsets()) >= 9 and all(drill.offsets().values()), "every partition is read", SLOW_S)
    yield drill
    subprocess.run(down, env=environment, capture_output=True, check=False)


@pytest.mark.timeout(600)
def test_a_killed_broker_loses_nothing_that_was_read(drill: Drill) -> None:
    """A broker is killed and comes back: it leaves the registry, returns, and its flushed messages are read (§3.2)."""
    broker = drill.container("broker2")
    broker.kill()
    until(lambda: drill.alive() == {1, 3}, "its registration is gone", SLOW_S)
    until(drill.reads_on(1), "the others are read on", SLOW_S)
    broker.start()
    until(lambda: drill.alive() == {1, 2, 3}, "it is registered again", SLOW_S)
    until(drill.reads_on(2), "its partitions are read again", SLOW_S)

    assert drill.delivered_without_a_gap()


@pytest.mark.timeout(600)
def test_a_paused_zookeeper_server_stops_nothing(drill: Drill) -> None:
    """One of three ZooKeeper servers stands still: the other two go on, and so do the readers (§3.2)."""
    server = drill.container("zk3")
    server.pause()
    try:
        until(drill.reads_on(), "every partition is read on", SLOW_S)
    finally:
        server.unpause()

    assert drill.delivered_without_a_gap()


@pytest.mark.timeout(600)
def test_a_broker_cut_off_from_zookeeper_comes_back_as_itself(drill: Drill) -> None:
    """A broker cut off from ZooKeeper leaves the registry although it lives; joined again, it registers anew (§3.2)."""
    network = drill.engine.networks.get(f"{PROJECT}_coordination")
    broker = drill.container("broker3")
    network.disconnect(broker)
    until(lambda: drill.alive() == {1, 2}, "its session has ended", SLOW_S)
    assert broker.status == "running"
    network.connect(broker, aliases=["broker3"])
    until(lambda: drill.alive() == {1, 2, 3}, "it is registered again", SLOW_S)
    until(drill.reads_on(3), "its partitions are read again", SLOW_S)

    assert drill.delivered_without_a_gap()
