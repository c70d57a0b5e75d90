"""A cluster of real processes: brokers, a producer that knows what was stored, consumers that write histories."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.groups import ZooKeeperGroups
from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.types import BrokerPartition
from kafka2011.wire import AckLevel, encode_set
from tests.checker.checker import Checker, Report
from tests.checker.history import HistoryFile, Op, read_histories
from tests.waiting import until
from zk_registry.session import ZooKeeperSession

SESSION_S = 3.0
TOPIC = "orders"


class Member:
    """One consumer process."""

    def __init__(self, arena: Arena, name: str, connect: str, edition: str) -> None:
        self.name = name
        self.output = arena.directory / f"{name}.log"
        command = [sys.executable, "-m", "tests.integration.consumers.member", connect, arena.group, TOPIC]
        command += [str(arena.directory / f"{name}.history"), name, str(arena.session_s), edition]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(command, stderr=output, stdout=output, preexec_fn=die_with_parent)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def leave(self) -> None:
        """SIGTERM: close in peace."""
        self.signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.output.read_text()


class Arena:
    """Everything of one test."""

    def __init__(self, connect: str, directory: Path, *, session_s: float = SESSION_S) -> None:
        self.connect, self.directory, self.group, self.session_s = connect, directory, "billing", session_s
        self.brokers: dict[int, BrokerProcess] = {}
        self.members: dict[str, Member] = {}
        self.sent: set[str] = set()
        self._nemesis = HistoryFile(directory / "nemesis.history", "nemesis")
        self._history = HistoryFile(directory / "producer.history", "p1")
        self._session = ZooKeeperSession(connect, timeout_s=20.0)
        self._session.start()
        self.registry = ZooKeeperGroups(self._session)
        self._number = 0
        self._producing = threading.Event()
        self._producer: threading.Thread | None = None

    def broker(self, broker_id: int, partitions: int = 2) -> BrokerProcess:
        options = {
            "brokerid": broker_id,
            "zk.connect": self.connect,
            "zk.sessiontimeout.ms": round(self.session_s * 1000),
            "num.partitions": partitions,
            "log.flush.interval": 1,
            "produce.acks.enable": True,
        }
        self.brokers[broker_id] = BrokerProcess(options=options).start()
        return self.brokers[broker_id]

    def join(self, name: str, connect: str | None = None, *, edition: str = "sound") -> Member:
        self.members[name] = Member(self, name, connect or self.connect, edition)
        return self.members[name]

    def fault(self, name: str, target: str) -> None:
        self._nemesis.write("fault", "info", name=name, target=target)

    def send(self, broker_id: int, partition: int, count: int = 5) -> None:
        """Publish and learn the offsets; a send that fails is not counted as stored."""
        values = [f"p1-{self._number + i:06d}" for i in range(count)]
        self._number += count
        broker = self.brokers[broker_id]
        key = f"{TOPIC}/{broker_id}-{partition}"
        self._history.write("send", "invoke", key=key, vals=values)
        try:
            with BrokerConnection(broker.host, broker.port, connect_timeout_s=0.2, timeout_s=30) as connection:
                data = encode_set([value.encode() for value in values])
                first, after = connection.produce_acked(TOPIC, partition, data, AckLevel.FLUSHED)
        except Kafka2011Error:
            self._history.write("send", "info", key=key, vals=values)
            return
        size = (after - first) // count
        placed = [[first + i * size, first + (i + 1) * size, value] for i, value in enumerate(values)]
        self._history.write("send", key=key, v=placed)
        self.sent.update(values)

    def send_everywhere(self) -> None:
        for broker_id, broker in list(self.brokers.items()):
            for partition in range(int(str(broker.options["num.partitions"]))):
                self.send(broker_id, partition)

    def produce_all_the_time(self) -> None:
        def run() -> None:
            while not self._producing.wait(0.05):
                self.send_everywhere()

        self._producer = threading.Thread(target=run, daemon=True)
        self._producer.start()

    def stop_producing(self) -> None:
        self._producing.set()
        if self._producer is not None:
            self._producer.join(60)

    def owners(self) -> dict[BrokerPartition, str]:
        """Which member (by its consumer id) owns which partition, as ZooKeeper has it."""
        rows = self.registry.describe(self.group) or []
        return {BrokerPartition.parse(row.partition): row.owner.rpartition("-")[0] for row in rows if row.owner}

    def wait_shared(self, n_partitions: int, n_members: int) -> dict[BrokerPartition, str]:
        """Wait until so many partitions are owned by so many consumers."""

        def shared() -> dict[BrokerPartition, str] | None:
            self._check_alive()
            owners = self.owners()
            return owners if len(owners) == n_partitions and len(set(owners.values())) == n_members else None

        return until(shared, f"{n_partitions} partitions are shared by {n_members}") or {}

    def polls(self, name: str) -> int:
        """How many messages a member has been given so far."""
        return sum(1 for op in self.ops([name]) if op["f"] == "poll")

    def ops(self, names: list[str] | None = None) -> list[Op]:
        found = self.directory.glob("*.history")
        return read_histories(path for path in found if names is None or path.stem in names)

    def wait_delivered(self) -> None:
        """Wait until everything acknowledged was delivered to somebody."""

        def missing() -> bool:
            self._check_alive()
            seen = {v for op in self.ops() if op["f"] == "poll" for _, _, v in op["v"]}
            return self.sent <= seen

        until(missing, "every acknowledged message is delivered")

    def check(self, *, at_rest: bool = False) -> Report:
        keys = [f"{TOPIC}/{p}" for p in self.owners()]
        return Checker(keys=keys, at_rest=at_rest).check(self.ops())

    def close(self) -> None:
        self.stop_producing()
        for member in self.members.values():
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()
        for broker in self.brokers.values():
            broker.__exit__(None, None, None)
        self._session.close()

    def _check_alive(self) -> None:
        for member in self.members.values():
            code = member.process.poll()
            if code not in (None, 0, -signal.SIGKILL):
                raise AssertionError(f"{member.name} ended with {code}:\n{member.output.read_text()}")


@pytest.fixture
def arena(zk_connect: str, tmp_path: Path) -> Iterator[Arena]:
    world = Arena(zk_connect, tmp_path)
    try:
        yield world
    finally:
        world.close()
