"""The comparison with real processes: a broker, a ZooKeeper, members that are started, stopped, killed and paused.

See docs/group-protocol.md. Slower than the simulation and never twice the same; it is there to show that the
simulation tells the truth. Requests are not counted here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from consumers.sim.compare.side_by_side import ALGORITHM_1, Run, figures_of
from consumers.sim.compare.world import HEARTBEAT_S, RATE, TOPIC
from consumers.sim.scenario import SESSION_S, Scenario
from consumers.sim.verdict import Lane
from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.errors import RequestTimedOut
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from zk_registry.embedded import EmbeddedZooKeeper

LIVE = ("one-joins", "one-leaves", "join-storm", "crash", "pause", "rolling-restart")
"""The scenarios that signals can bring about."""
REST_S = 6.0
START_PATIENCE_S = 60.0


def run_live(scenario: Scenario, protocol: str, rest_s: float = REST_S, session_s: float = SESSION_S) -> Run:
    """Put one protocol through a scenario in real time, with ``rest_s`` to come to rest in the end."""
    with ExitStack() as stack:
        options: dict[str, object] = {
            "modern.port": 0,
            "log.format": "2011",
            "num.partitions": scenario.n_partitions,
            "log.flush.interval": 1,
            "group.initial.rebalance.delay.ms": 500,
            "group.min.session.timeout.ms": 1,
            "group.consumer.session.timeout.ms": int(session_s * 1000),
            "group.consumer.heartbeat.interval.ms": int(HEARTBEAT_S * 1000),
        }
        how: dict[str, Any] = {"protocol": protocol, "session_s": session_s}
        if protocol == ALGORITHM_1:
            zookeeper = EmbeddedZooKeeper()
            zookeeper.start()
            stack.callback(zookeeper.stop)
            how["zookeeper"] = options["zk.connect"] = zookeeper.connect
        broker = stack.enter_context(BrokerProcess(options=options))
        how["modern"] = f"{broker.host}:{broker.modern_port}"
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka2011-live-")))
        stage = _Stage(scenario, how, directory, broker)
        stack.callback(stage.kill_all)
        return stage.play(protocol, rest_s)


class _Stage:
    """The processes of one run. Thread: one, and one that publishes."""

    def __init__(self, scenario: Scenario, how: dict[str, Any], directory: Path, broker: BrokerProcess) -> None:
        self._scenario, self._how, self._directory, self._broker = scenario, how, directory, broker
        self._members: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, float] = {}
        self._published = 0
        self._quiet = threading.Event()

    def play(self, protocol: str, rest_s: float) -> Run:
        publisher = threading.Thread(target=self._publish, daemon=True)
        publisher.start()
        for _ in range(self._scenario.n_consumers):
            self._join()
        # The first thing happens a second after the group has come to rest, however long that takes here.
        self._wait_for_rest()
        first = time.monotonic() + 1.0 - min(fault.at for fault in self._scenario.faults)
        todo = [(fault.at, fault.kind, fault.target, fault.length) for fault in self._scenario.faults]
        for at, kind, target, length in sorted(todo):
            time.sleep(max(0.0, first + at - time.monotonic()))
            self._do(kind, target, length)
        time.sleep(rest_s)
        self._quiet.set()
        publisher.join()
        time.sleep(SESSION_S)
        end = time.monotonic()
        self.kill_all()
        return self._judge(protocol, first, end)

    def _wait_for_rest(self) -> None:
        deadline = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < deadline:
            lanes, _ = self._read(0.0, time.monotonic())
            owned = [lane for lane in lanes if lane.end > time.monotonic() - 0.1]
            readers = {lane.member for lane in owned}
            if len(owned) == self._scenario.n_partitions and len(readers) == self._scenario.n_consumers:
                return
            time.sleep(0.2)
        raise RequestTimedOut(f"the group did not come to rest within {START_PATIENCE_S:.0f} s; try again")

    def _publish(self) -> None:
        with BrokerConnection(self._broker.host, self._broker.port) as connection:
            while not self._quiet.wait(1 / RATE):
                for partition in range(self._scenario.n_partitions):
                    connection.produce(TOPIC, partition, encode_set([b"%d" % self._published]))
                    self._published += 1

    def _join(self) -> None:
        name = f"c{len(self._members)}"
        how = self._how | {"name": name, "out": str(self._directory / name)}
        command = [sys.executable, "-m", "consumers.sim.compare.live_member", json.dumps(how)]
        self._members[name] = subprocess.Popen(command, preexec_fn=die_with_parent)

    def _do(self, kind: str, target: int, length: float) -> None:
        living = [name for name in self._members if name not in self._ended]
        if kind == "join":
            self._join()
            return
        name = living[target % len(living)]
        process = self._members[name]
        if kind == "pause":
            process.send_signal(signal.SIGSTOP)
            threading.Timer(length, os.kill, (process.pid, signal.SIGCONT)).start()
            time.sleep(length)
        else:
            process.send_signal(signal.SIGTERM if kind == "leave" else signal.SIGKILL)
            self._ended[name] = time.monotonic()

    def kill_all(self) -> None:
        """End every process this run started."""
        for process in self._members.values():
            process.kill()
            process.wait()

    def _judge(self, protocol: str, first: float, end: float) -> Run:
        lanes, reads = self._read(first, end)
        scenario = replace(self._scenario, duration_s=end - first)
        figures = figures_of(scenario, protocol, lanes, 0, 0, 0)
        duplicates = sum(n - 1 for n in reads.values())
        return Run(scenario, replace(figures, duplicates=duplicates, lost=self._published - len(reads)), tuple(lanes))

    def _read(self, first: float, end: float) -> tuple[list[Lane], Counter[tuple[int, int]]]:
        """What the members wrote down so far: who read which partition when, and each message they read."""
        lanes: list[Lane] = []
        reads: Counter[tuple[int, int]] = Counter()
        for name in self._members:
            since: dict[int, float] = {}
            path = self._directory / name
            lines = path.read_text().splitlines() if path.exists() else []
            for entry in [json.loads(line) for line in lines if line.endswith("}")]:
                partition, at = entry["partition"], entry["t"] - first
                if entry["what"] == "read":
                    reads[partition, entry["offset"]] += 1
                elif entry["what"] == "began":
                    since[partition] = at
                elif partition in since:
                    lanes.append(Lane(name, str(partition), since.pop(partition), at))
            last = self._ended.get(name, end) - first
            lanes += [Lane(name, str(partition), at, max(at, last)) for partition, at in since.items()]
        return lanes, reads
