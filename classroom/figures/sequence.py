"""JoinGroup, SyncGroup and Heartbeat as a sequence, seen on the wire between two real members and a broker.

A door stands before the broker's modern port, which the broker advertises as its own; every request and every answer
passes through it, and is written down with its time.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from classroom.figures.drawing import BLUE, GREEN, INK, ORANGE, RED, SOFT, Sheet
from consumers.group_protocol.member import Consumer
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.wire.codec import ApiKey

TOPIC, GROUP = "clicks", "billing"
SHOWN = {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"}
_COLOURS = {"JoinGroup": BLUE, "SyncGroup": GREEN, "Heartbeat": SOFT, "LeaveGroup": RED, "FindCoordinator": ORANGE}
_HEAD = struct.Struct(">hhih")
_MOST = 44


@dataclass(slots=True)
class Exchange:
    """One request of a client, and when its answer passed."""

    client: str
    name: str
    asked: float
    answered: float | None = None
    error: int | None = None


class Door:
    """Pass bytes on between clients and the broker, and write down what they ask. Thread: one a direction."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[Exchange] = []
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    def lead_to(self, port: int) -> None:
        """Begin: whoever knocks is led to this port."""
        threading.Thread(target=self._accept, args=(port,), daemon=True).start()

    def close(self) -> None:
        """Let nobody in any more, and end what is under way."""
        for one in [self._listener, *self._open]:
            one.close()

    def _accept(self, port: int) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", port))
            self._open += [client, broker]
            waiting: dict[int, Exchange] = {}
            for source, target, note in ((client, broker, self._asked), (broker, client, self._answered)):
                threading.Thread(target=self._pass_on, args=(source, target, note, waiting), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, note: object, waiting: object) -> None:
        assert callable(note)
        buffer = bytearray()
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                buffer += data
                while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
                    note(bytes(buffer[4 : 4 + size]), waiting)
                    del buffer[: 4 + size]
        except OSError:
            pass  # one side went; the other is told by the close
        for end in (source, target):
            end.close()

    def _asked(self, frame: bytes, waiting: dict[int, Exchange]) -> None:
        key, _, number, length = _HEAD.unpack_from(frame)
        client = frame[_HEAD.size : _HEAD.size + length].decode()
        name = "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
        with self._lock:
            waiting[number] = Exchange(client, name, SYSTEM_CLOCK.monotonic())
            self.seen.append(waiting[number])

    def _answered(self, frame: bytes, waiting: dict[int, Exchange]) -> None:
        found = waiting.pop(int.from_bytes(frame[:4], "big"), None)
        if found is not None:
            found.answered = SYSTEM_CLOCK.monotonic()
            if found.name == "Heartbeat":
                found.error = int.from_bytes(frame[8:10], "big")


def draw() -> str:
    """Two members join one after the other, share the partitions, and the first leaves."""
    door = Door()
    options = {
        "modern.port": 0,
        "modern.advertised.port": door.port,
        "num.partitions": 4,
        "log.flush.interval": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    with TemporaryDirectory(prefix="kafka2011-figure-") as directory, BrokerProcess(Path(directory), options) as broker:
        assert broker.modern_port is not None
        door.lead_to(broker.modern_port)
        with BrokerConnection(broker.host, broker.port) as connection:
            for partition in range(4):
                connection.produce(TOPIC, partition, encode_set([b"hello"]))
        try:
            _scene(door.port)
        finally:
            door.close()
    return picture(door.seen)


def _scene(port: int) -> None:
    def member(name: str) -> Consumer:
        made = Consumer(
            bootstrap_servers=f"127.0.0.1:{port}",
            group_id=GROUP,
            client_id=name,
            heartbeat_interval_ms=400,
            auto_offset_reset="earliest",
        )
        made.subscribe([TOPIC])
        return made

    ada = member("ada")
    _poll_until([ada], lambda: len(ada.assignment()) == 4)
    bob = member("bob")
    _poll_until([ada, bob], lambda: len(ada.assignment()) == len(bob.assignment()) == 2)
    ada.close()
    _poll_until([bob], lambda: len(bob.assignment()) == 4)
    bob.close()


def _poll_until(members: Iterable[Consumer], done: object) -> None:
    """Poll as applications do, each in its own time, until it is done and two heartbeats later."""
    assert callable(done)
    over = threading.Event()

    def work(member: Consumer) -> None:
        while not over.is_set():
            member.poll(0.05)

    threads = [threading.Thread(target=work, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    deadline = SYSTEM_CLOCK.monotonic() + 60
    while not done() and SYSTEM_CLOCK.monotonic() < deadline:
        SYSTEM_CLOCK.sleep(0.02)
    SYSTEM_CLOCK.sleep(0.9)
    over.set()
    for thread in threads:
        thread.join()


def picture(seen: list[Exchange]) -> str:
    """A line down for each party, an arrow for each request and each answer, in the order they passed."""
    shown = [one for one in seen if one.name in SHOWN]
    # A member asks for its coordinator more often (a connection for commits); once is enough here.
    firsts = {one.client: one for one in reversed(shown) if one.name == "FindCoordinator"}
    shown = [one for one in shown if one.name != "FindCoordinator" or firsts[one.client] is one]
    clients = sorted({one.client for one in shown})
    moments: list[tuple[float, Exchange, bool]] = [(one.asked, one, True) for one in shown]
    moments += [(one.answered, one, False) for one in shown if one.answered is not None]
    moments.sort(key=lambda moment: moment[0])
    cut = moments[:_MOST]
    began = cut[0][0]
    middle = 480.0
    places = dict(zip(clients, (180.0, 780.0), strict=True))
    sheet = Sheet(
        960,
        140 + 24 * len(cut),
        "JoinGroup, SyncGroup, Heartbeat: what came after Algorithm 1",
        "One coordinator decides; members learn of a change by the answer to their next heartbeat. Seen on the wire.",
    )
    bottom = 120 + 24 * len(cut)
    for name, x in [*places.items(), ("coordinator (the broker)", middle)]:
        sheet.text(x, 80, name, bold=True, anchor="middle")
        sheet.line(x, 90, x, bottom)
    for row, (t, one, asks) in enumerate(cut):
        y = 108 + row * 24
        x1, x2 = (places[one.client], middle) if asks else (middle, places[one.client])
        colour = _COLOURS.get(one.name, INK)
        away = 8 if x2 < x1 else -8
        trouble = not asks and bool(one.error)
        sheet.line(x1, y, x2 + away, y, stroke=RED if trouble else colour, dashed=not asks, arrow=True)
        says = one.name if asks else ("rebalance!" if trouble else f"{one.name} answer")
        sheet.text((x1 + x2) / 2, y - 4, says, anchor="middle", size=11, fill=RED if trouble else colour)
        sheet.text(52, y + 4, f"{1000 * (t - began):,.0f} ms", anchor="end", fill=SOFT, size=10)
    return sheet.svg()
