"""``make kills``: kill -9 of random processes in a cluster of three brokers; nothing acknowledged may be lost.

    make kills                                   200 kills: about ten minutes
    make kills ARGS="--kills 40 --seed 3"

Three brokers with both ports, a ZooKeeper server, two members of a group. Six producers, one on each port of each
broker, send a message, wait until it is acknowledged as flushed, and send the next; each acknowledgement is noted with
its offset. Meanwhile, chosen by the seed, one process after the other is killed and started again, sometimes while the
one before is still starting. At the end every log is read, and every acknowledged message must stand at its offset. No
log of any process may tell of an error that nobody handled.

The judge is judged: it is given an acknowledgement of a message that was never sent and a log with one message cut out,
and must find both.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess, unhandled_errors
from kafka2011.wire import AckLevel, decode_set, encode_set
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.wire_client import WireClient
from zk_registry.embedded import EmbeddedZooKeeper

TOPIC = "kept"
N_BROKERS, N_MEMBERS = 3, 2
OPTIONS = {
    "num.partitions": 2,
    "modern.port": 0,
    "log.format": "2011",
    "produce.acks.enable": True,
    "log.file.size": 100_000,
}
_HEAD = 10
"""Bytes of a 2011 message before its payload: a modern offset is that of its last byte."""


@dataclass(frozen=True)
class Acked:
    """An acknowledgement: this message stands at this offset."""

    broker: int
    partition: int
    offset: int
    payload: bytes


Stored = dict[tuple[int, int], dict[int, bytes]]
"""Broker and partition to offset to payload."""


def lost(acked: Iterable[Acked], stored: Stored) -> list[Acked]:
    """The acknowledgements that are not true."""
    return [one for one in acked if stored.get((one.broker, one.partition), {}).get(one.offset) != one.payload]


class Producer(threading.Thread):
    """Sends one message after the other to one partition of one broker, and notes what was acknowledged."""

    def __init__(self, number: int, broker: BrokerProcess, port: str, over: threading.Event) -> None:
        super().__init__(daemon=True, name=f"{port}-{number}")
        self._number, self._broker, self._port, self._over = number, broker, port, over
        self.acked: list[Acked] = []
        self.failed: Counter[str] = Counter()

    def run(self) -> None:
        n = 0
        while not self._over.is_set():
            try:
                send = self._connect()
                while not self._over.is_set():
                    n += 1
                    self.acked.append(send(f"{self.name}-{n}".encode()))
            except (Kafka2011Error, OSError, EOFError) as error:
                # Killed, or not yet back: nothing was promised.
                self.failed[type(error).__name__] += 1
                time.sleep(0.05)

    def _connect(self) -> Callable[[bytes], Acked]:
        return self._by_2011() if self._port == "2011" else self._by_modern()

    def _by_2011(self) -> Callable[[bytes], Acked]:
        client = BrokerConnection(self._broker.host, self._broker.port, timeout_s=20.0, connect_timeout_s=0.5)

        def send(payload: bytes) -> Acked:
            offset, _ = client.produce_acked(TOPIC, 0, encode_set([payload]), AckLevel.FLUSHED)
            return Acked(self._number, 0, offset, payload)

        return send

    def _by_modern(self) -> Callable[[bytes], Acked]:
        client = WireClient(self._broker.modern_port or 0)
        client.socket.settimeout(20.0)

        def send(payload: bytes) -> Acked:
            partition = self._partition(client)
            answer = client.produce(TOPIC, [payload], acks=-1, partition=partition)
            if answer.error != ErrorCode.NONE:
                raise Kafka2011Error(ErrorCode(answer.error).name)
            return Acked(self._number, 1, answer.base_offset - len(payload) - _HEAD + 1, payload)

        return send

    def _partition(self, client: WireClient) -> int:
        """Partition 1 of this broker, by the number that modern clients give it."""
        asked = Struct(topics=[Struct(name=TOPIC)], auto_create=True)
        (topic,) = client.ask(ApiKey.METADATA, 8, asked).topics
        mine = sorted(row.index for row in topic.partitions if row.leader == self._number)
        if len(mine) < 2:
            raise Kafka2011Error("the partitions are not known yet")
        return int(mine[1])


class Member:
    """A member of a group, as a process."""

    def __init__(self, zookeeper: str, log: Path) -> None:
        self._command = [sys.executable, "-m", "kafka2011", "consume", TOPIC, "-g", "readers", "-z", zookeeper]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Join."""
        with open(self._log, "ab") as log:
            quiet = subprocess.DEVNULL
            self._process = subprocess.Popen(
                self._command, stdin=quiet, stdout=quiet, stderr=log, preexec_fn=die_with_parent
            )

    def kill(self) -> None:
        """Die."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    @property
    def output(self) -> str:
        """What it told."""
        return self._log.read_text(errors="replace")


class Cluster:
    """The processes, and the kills."""

    def __init__(self, place: Path, stack: ExitStack, seed: int) -> None:
        self._random = random.Random(seed)
        self.zookeeper = stack.enter_context(EmbeddedZooKeeper(servers=1))
        self.brokers = [
            BrokerProcess(place / f"broker-{n}", OPTIONS | {"brokerid": n, "zk.connect": self.zookeeper.connect})
            for n in range(N_BROKERS)
        ]
        for broker in self.brokers:
            broker.expected_errors = ("",)  # judged at the end, for all processes together
            stack.enter_context(broker)
        self.members = [Member(self.zookeeper.connect, place / f"member-{n}.txt") for n in range(N_MEMBERS)]
        for member in self.members:
            member.start()
            stack.callback(member.kill)
        self.killed: Counter[str] = Counter()

    def strike(self) -> None:
        """Kill up to three processes at once, and start them again."""
        names = [f"broker {n}" for n in range(N_BROKERS)] * 4 + [f"member {n}" for n in range(N_MEMBERS)] * 2
        names += ["zookeeper"] * 2
        chosen = sorted(set(self._random.sample(names, self._random.choice((1, 2, 3)))))
        for name in chosen:
            self._kill(name)
        time.sleep(self._random.uniform(0, 0.5))
        # ZooKeeper first: a broker does not start without it.
        for name in reversed(chosen):
            self._start(name)
        time.sleep(self._random.uniform(0, 0.5))

    def _kill(self, name: str) -> None:
        kind, _, number = name.partition(" ")
        self.killed[kind] += 1
        if kind == "zookeeper":
            self.zookeeper.kill(0)
        else:
            (self.brokers if kind == "broker" else self.members)[int(number)].kill()

    def _start(self, name: str) -> None:
        kind, _, number = name.partition(" ")
        if kind == "zookeeper":
            self.zookeeper.restart(0)
        elif kind == "broker":
            self.brokers[int(number)].restart()
        else:
            self.members[int(number)].start()

    def stored(self) -> Stored:
        """Everything in every log."""
        return {
            (number, partition): dict(_read(broker, partition))
            for number, broker in enumerate(self.brokers)
            for partition in (0, 1)
        }

    def unhandled(self) -> list[str]:
        """Errors in any log that nobody handled."""
        return [text for process in (*self.brokers, *self.members) for text in unhandled_errors(process.output)]


def _read(broker: BrokerProcess, partition: int) -> Iterable[tuple[int, bytes]]:
    with BrokerConnection(broker.host, broker.port) as client:
        offset, (end,) = 0, client.offsets(TOPIC, partition)
        while offset < end:
            messages = decode_set(client.fetch(TOPIC, partition, offset), offset)
            yield from ((message.offset, message.payload) for message in messages)
            offset = messages[-1].next_offset


def judge_is_awake(acked: list[Acked], stored: Stored) -> bool:
    """Whether the judge sees an acknowledgement that is not true and a message that was cut out."""
    never_sent = Acked(0, 0, 10**9, b"never sent")
    victim = acked[len(acked) // 2]
    cut = {key: {o: p for o, p in log.items() if p != victim.payload} for key, log in stored.items()}
    return lost([*acked, never_sent], stored) == [*lost(acked, stored), never_sent] and victim in lost(acked, cut)


@click.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(kills: int, seed: int) -> None:
    """Kill processes, and look for what was acknowledged."""
    over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="kafka2011-kills-") as place, ExitStack() as stack:
        cluster = Cluster(Path(place), stack, seed)
        ports = [(n, broker, port) for n, broker in enumerate(cluster.brokers) for port in ("2011", "modern")]
        producers = [Producer(n, broker, port, over) for n, broker, port in ports]
        for producer in producers:
            producer.start()
        began = time.monotonic()
        while cluster.killed.total() < kills:
            cluster.strike()
            if cluster.killed.total() % 10 == 0:
                n_acked = sum(len(producer.acked) for producer in producers)
                click.echo(f"{cluster.killed.total():4} kills, {n_acked:,} acknowledged")
        seconds = time.monotonic() - began
        over.set()
        for producer in producers:
            producer.join()
        acked = [one for producer in producers for one in producer.acked]
        stored = cluster.stored()
        gone, unhandled = lost(acked, stored), cluster.unhandled()
        awake = judge_is_awake(acked, stored)
    click.echo(f"seed {seed}: {dict(cluster.killed)} killed in {seconds:.0f} s")
    for producer in producers:
        click.echo(f"  {producer.name:<10} {len(producer.acked):>7,} acknowledged; not: {dict(producer.failed)}")
    click.echo(f"{len(acked):,} acknowledged, {len(gone)} lost, {len(unhandled)} unhandled errors")
    for line in [*map(str, gone[:5]), *unhandled[:3], *([] if awake else ["the judge is blind"])]:
        click.echo(line)
    raise SystemExit(1 if gone or unhandled or not awake else 0)


if __name__ == "__main__":
    main()
