"""``make standby-kills``: kill -9 of leaders of a broker with a standby; nothing acknowledged or seen may be lost.

    make standby-kills                                  100 kills of leaders, every fifth with its disk deleted
    make standby-kills ARGS="--kills 20 --seed 3"
    make standby-kills ARGS="--control"                 no standbys, the disk deleted: must lose

Two members of broker 0 and a ZooKeeper server. A producer on the 2011 port waits for *all*, another is 0.7's kind and
is told nothing; a group of Algorithm 1 reads, and where ``KAFKA07_LIB`` names them the real consumer and the real
producer of Kafka 0.7. An observer notes what each offset held, from the first time it was visible. Now and then the
leader is stopped in order instead. At the end: everything acknowledged stands at its offset and has reached every
consumer, no offset has changed its meaning, the order is kept, and the members' files are the same.

The judge is judged: it is given an acknowledgement of a message that was never sent, and a log with one message cut
out, and must find both.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, decode_set, encode_set
from tests.integration.since2011.standby.logical_broker import LogicalBroker
from tests.waiting import until
from zk_registry.brokers import BrokerRegistry
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.session import ZooKeeperSession

TOPIC = "kept"
SESSION_MS = 2000
OPTIONS = {
    "zk.sessiontimeout.ms": SESSION_MS,
    "log.file.size": 200_000,
    "standby.lag.ms": 5000,
    "produce.acks.timeout.ms": 3000,
}
Place = tuple[int, bytes]
"""An offset, and what stands there."""


class Client(threading.Thread, ABC):
    """Somebody who talks to whoever leads broker 0, again and again."""

    def __init__(self, connect: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._session = ZooKeeperSession(connect)
        self._session.start()
        self._registry, self._over = BrokerRegistry(self._session), over
        self.n_failed = 0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                address = self._registry.brokers().get(0)
                if address is not None:
                    with BrokerConnection(address.host, address.port, timeout_s=10.0, connect_timeout_s=0.2) as one:
                        while not self._over.is_set():
                            self.talk(one)
            except Kafka2011Error:
                self.n_failed += 1
            self._over.wait(0.02)
        self._session.close()

    @abstractmethod
    def talk(self, connection: BrokerConnection) -> None:
        """Say one thing."""


class AckedProducer(Client):
    """Sends one message after the other and waits until all in sync have it."""

    n = 0

    def __init__(self, connect: str, over: threading.Event) -> None:
        super().__init__(connect, over)
        self.acked: list[Place] = []

    def talk(self, connection: BrokerConnection) -> None:
        self.n += 1
        payload = f"acked-{self.n:07}".encode()
        offset, _ = connection.produce_acked(TOPIC, 0, encode_set([payload]), AckLevel.ALL)
        self.acked.append((offset, payload))
        self._over.wait(0.005)


class Observer(Client):
    """Reads from the first message on and notes what each offset held; then everything again."""

    offset = 0

    def __init__(self, connect: str, over: threading.Event) -> None:
        super().__init__(connect, over)
        self.seen: dict[int, bytes] = {}
        self.changed: list[tuple[int, bytes, bytes]] = []
        self.n_read = 0

    def talk(self, connection: BrokerConnection) -> None:
        data = connection.fetch(TOPIC, 0, self.offset)
        for message in decode_set(data, self.offset):
            before = self.seen.setdefault(message.offset, message.payload)
            self.n_read += 1
            if before != message.payload:
                self.changed.append((message.offset, before, message.payload))
            self.offset = message.next_offset
        if not data:
            self.offset = max(0, self.offset - 40_000) if self._over.wait(0.02) else self.offset
            self._over.wait(0.05)


def reader(zookeeper: str, out: Path) -> subprocess.Popen[bytes]:
    """A member of a group of Algorithm 1 that prints what it reads."""
    command = [sys.executable, "-m", "kafka2011", "consume", TOPIC, "-g", "readers", "-z", zookeeper]
    with out.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)


class ToldNothing(threading.Thread):
    """Feeds the real console producer of 0.7, a line every few milliseconds; it ends where a send fails: another is
    started then."""

    def __init__(self, place: Path, connect: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        from tests.interop.era2011 import kafka07

        main = ("kafka.producer.ConsoleProducer", "--zookeeper", connect, "--topic", TOPIC, "--sync")
        java = (str(kafka07.find_java()), "-Xmx96m", "-XX:+UseSerialGC", "-cp", f"{kafka07.library()}/*")
        self._command = [*java, *main]
        self._place, self._over = place, over
        self.n = self.n_started = 0

    def run(self) -> None:
        while not self._over.is_set():
            self.n_started += 1
            with (self._place / "producer07.txt").open("ab") as log:
                process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=die_with_parent
                )
            assert process.stdin is not None
            try:
                while not self._over.wait(0.01) and process.poll() is None:
                    self.n += 1
                    process.stdin.write(f"told-nothing-{self.n:07}\n".encode())
                    process.stdin.flush()
            except OSError:
                self.n -= 1
            process.kill()
            process.wait()


def lost(acked: Iterable[Place], stored: dict[int, bytes]) -> list[Place]:
    """The acknowledgements that are not true."""
    return [one for one in acked if stored.get(one[0]) != one[1]]


def out_of_order(lines: Iterable[bytes]) -> list[bytes]:
    """Messages of the acknowledged producer that a consumer saw for the first time after a later one."""
    highest, seen, found = b"", set(), []
    for line in lines:
        if line.startswith(b"acked-") and line not in seen:
            seen.add(line)
            if line < highest:
                found.append(line)
            highest = max(highest, line)
    return found


def judge_is_awake(acked: list[Place], stored: dict[int, bytes]) -> bool:
    """Whether the judge sees an acknowledgement that is not true, and a message that was cut out."""
    never, victim = (10**9, b"never sent"), acked[len(acked) // 2]
    cut = {offset: payload for offset, payload in stored.items() if offset != victim[0]}
    return lost([*acked, never], stored) == [never] and lost(acked, cut) == [victim]


def control(place: Path) -> int:
    """Without standbys: a broker alone, its disk deleted. The judge must find everything lost."""
    options = {"produce.acks.enable": True}
    with BrokerProcess(place / "alone", options) as broker:
        with BrokerConnection(broker.host, broker.port) as one:
            sent = [b"%05d" % n for n in range(200)]
            acked = [(one.produce_acked(TOPIC, 0, encode_set([each]), AckLevel.FLUSHED)[0], each) for each in sent]
        broker.kill()
        subprocess.run(["rm", "-rf", str(place / "alone")], check=True)
        broker.restart()
        with BrokerConnection(broker.host, broker.port) as one:
            data = one.fetch(TOPIC, 0, 0) if one.offsets(TOPIC, 0)[0] else b""
            stored = {message.offset: message.payload for message in decode_set(data, 0)}
    n = len(lost(acked, stored))
    click.echo(f"control, no standbys, the disk deleted: {n} of {len(acked)} acknowledged as flushed are lost")
    return 0 if n == len(acked) else 1


class Kafka07:
    """The real consumer of Kafka 0.7, if it is here."""

    def __init__(self, place: Path, connect: str, stack: ExitStack) -> None:
        from tests.interop.era2011 import kafka07

        self.consumer = kafka07.consumer(place, "consumer07", connect, "readers07", TOPIC)
        stack.callback(self.consumer.close)

    def lines(self) -> list[bytes]:
        """What the consumer has printed."""
        return self.consumer.out.read_bytes().splitlines()


def strikes(broker: LogicalBroker, kills: int, seed: int) -> Iterator[tuple[str, float]]:
    """Kill the leader, or stop it, so many times: how, and how long nobody answered."""
    chance = random.Random(seed)
    n_kills = 0
    while n_kills < kills:
        broker.in_sync("ab")
        time.sleep(chance.uniform(0.0, 0.6))
        leader = broker.leader()
        how = "stop" if chance.random() < 0.15 else "kill"
        began = time.monotonic()
        process = broker.members[leader]
        if how == "stop":
            stopping = threading.Thread(target=process.stop)
            stopping.start()
        else:
            n_kills += 1
            process.kill()
            if n_kills % 5 == 0:
                how = "kill, disk deleted"
                broker.wipe(leader)
        broker.next_leader(leader)
        yield how, time.monotonic() - began
        process.stop()
        process.start()


@click.command()
@click.option("--kills", default=100, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--control", "only_control", is_flag=True, help="Only the control that must lose.")
def main(kills: int, seed: int, only_control: bool) -> None:
    """Kill leaders, and look for what was acknowledged or seen."""
    over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="kafka2011-standby-") as name, ExitStack() as stack:
        place = Path(name)
        if only_control:
            raise SystemExit(control(place))
        connect = stack.enter_context(EmbeddedZooKeeper()).connect
        broker = LogicalBroker(place, connect, "ab", OPTIONS, stack)
        for process in broker.members.values():
            process.expected_errors = ("",)
        broker.send(TOPIC, [b"the first"])
        era = Kafka07(place, connect, stack) if os.environ.get("KAFKA07_LIB") else None
        group = reader(connect, place / "group.txt")
        stack.callback(group.kill)
        # Both begin where the log ends when they come: from the first they have read on they must read everything.
        outputs = {"Algorithm 1": lambda: (place / "group.txt").read_bytes().splitlines()}
        if era is not None:
            outputs["Kafka 0.7"] = era.lines
        for n in range(1000):
            if all(lines() for lines in outputs.values()):
                break
            broker.send(TOPIC, [b"is anybody there %d" % n])
            time.sleep(0.2)
        producer, observer = AckedProducer(connect, over), Observer(connect, over)
        told = ToldNothing(place, connect, over) if era is not None else None
        for thread in (producer, observer, told):
            if thread is not None:
                thread.start()
        gaps: dict[str, list[float]] = {}
        for n, (how, seconds) in enumerate(strikes(broker, kills, seed), 1):
            gaps.setdefault(how, []).append(seconds)
            if n % 10 == 0:
                click.echo(f"{n:4} leaders gone, {len(producer.acked):,} acknowledged, {observer.n_read:,} read")
        broker.in_sync("ab")
        over.set()
        for thread in (producer, observer, told):
            if thread is not None:
                thread.join()
        stored = dict(broker.read(TOPIC))
        wanted = {payload for _, payload in producer.acked}
        unread = {}
        for who, lines in outputs.items():
            try:
                until(lambda lines=lines: wanted <= set(lines()), f"{who} has read everything", 120.0)  # type: ignore[misc]
            except AssertionError:
                pass
            unread[who] = (len(wanted - set(lines())), len(out_of_order(lines())))
        same = bool(until(lambda: broker.same_files(TOPIC), "the files are the same"))
        gone = lost(producer.acked, stored)
        unkept = lost(observer.seen.items(), stored)
        awake = judge_is_awake(producer.acked, stored)
        n_told = sum(payload.startswith(b"told") for payload in set(stored.values()))
    click.echo(f"seed {seed}, session {SESSION_MS} ms:")
    for how, seconds_of in sorted(gaps.items()):
        p95 = sorted(seconds_of)[int(0.95 * (len(seconds_of) - 1))]
        p50 = statistics.median(seconds_of)
        click.echo(f"  {len(seconds_of):4} × {how:<20} nobody leads for p50 {p50:.2f} s, p95 {p95:.2f} s")
    click.echo(f"  {len(producer.acked):,} acknowledged by all: {len(gone)} lost")
    told_of = f"{len(unkept)} lost, {len(observer.changed)} changed; the members' files are the same: {same}"
    click.echo(f"  {len(observer.seen):,} offsets seen: {told_of}")
    for who, (missing, disordered) in unread.items():
        click.echo(f"  {who}: {missing} acknowledged not read, {disordered} out of order")
    if told is not None:
        click.echo(f"  0.7's producer, told nothing: {told.n - n_told} of {told.n} lost, {told.n_started} started")
    click.echo("  the judge is " + ("awake" if awake else "blind"))
    bad = gone or unkept or observer.changed or not same or not awake or any(any(pair) for pair in unread.values())
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
