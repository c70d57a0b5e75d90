"""Somebody who only wants to be served: asks on both ports all the time, and notes how long each answer took.

A process of its own, so that an attacker's work in Python does not look like a broker that stalls. Three ask in turn,
each in a thread: one on a 2011 connection, one on a modern connection, and a newcomer who connects anew every time.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from since2011.wire.codec import ApiKey, Struct
from tests.integration.since2011.wire_client import WireClient

INTERVAL_S = 0.01
TOPIC = "bystander"
WHO = ("2011", "modern", "newcomer")


@dataclass(frozen=True)
class Address:
    """Where a broker is."""

    host: str
    port: int
    modern_port: int


@dataclass
class Waits:
    """How long each answer took, in seconds, in the order they were asked for."""

    seconds: list[float] = field(default_factory=list)

    def p99(self) -> float:
        """Of all moments at which somebody might have asked: a stall holds up everyone who would have come then."""
        all_of_them = []
        for wait in self.seconds:
            while wait > 0:
                all_of_them.append(wait)
                wait -= INTERVAL_S
        all_of_them.sort()
        return all_of_them[int(len(all_of_them) * 0.99)] if all_of_them else float("inf")


class Bystander:
    """The process, seen from outside: ``with Bystander(address) as bystander: …; bystander.waits()``."""

    def __init__(self, address: Address) -> None:
        self._mine, self._theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_watch, args=(address, self._theirs), daemon=True)

    def __enter__(self) -> Bystander:
        self._process.start()
        self._theirs.close()  # so that the end of the process is the end of the pipe
        self._mine.recv()  # all three were served once
        return self

    def waits(self) -> dict[str, Waits]:
        """Stop asking, and tell how long each of them waited; one who still waits has waited until now."""
        self._mine.send("stop")
        found: dict[str, Waits] = self._mine.recv()
        return found

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def favour(pid: int) -> None:
    """Let a process go before others where we may: what else a busy machine does is no attack."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, -10)


def _watch(address: Address, pipe: Connection) -> None:
    favour(os.getpid())
    asks = {"2011": _Ask2011(address), "modern": _AskModern(address), "newcomer": _Newcomer(address)}
    askers = {who: _Asker(ask) for who, ask in asks.items()}
    for asker in askers.values():
        asker.start()
    for asker in askers.values():
        asker.served.wait()
    pipe.send("served")
    pipe.recv()
    pipe.send({who: asker.stop() for who, asker in askers.items()})


class _Ask2011:
    def __init__(self, address: Address) -> None:
        self._connection = BrokerConnection(address.host, address.port, timeout_s=60.0)

    def __call__(self) -> None:
        self._connection.offsets(TOPIC, 0)

    def close(self) -> None:
        self._connection.close()


class _AskModern:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: WireClient | None = None

    def __call__(self) -> None:
        if self._client is None:
            self._client = WireClient(self._address.modern_port)
        try:
            self._client.ask(ApiKey.METADATA, 8, Struct(topics=[Struct(name=TOPIC)], auto_create=False))
        except OSError:
            self._client = None
            raise


class _Newcomer:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._turn = 0

    def __call__(self) -> None:
        self._turn += 1
        if self._turn % 2:
            with BrokerConnection(self._address.host, self._address.port, timeout_s=60.0) as connection:
                connection.offsets(TOPIC, 0)
        else:
            with WireClient(self._address.modern_port) as client:
                client.ask(ApiKey.METADATA, 8, Struct(topics=[Struct(name=TOPIC)], auto_create=False))


class _Asker(threading.Thread):
    """Asks again and again; who is refused has not been served, and waits on."""

    def __init__(self, ask: _Ask2011 | _AskModern | _Newcomer) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self._waits = Waits()
        self._began = time.monotonic()
        self._over = False
        self.served = threading.Event()

    def run(self) -> None:
        while not self._over:
            self._began = time.monotonic()
            while not self._over and not self._is_served():
                time.sleep(INTERVAL_S)
            if self.served.is_set():
                self._waits.seconds.append(time.monotonic() - self._began)
            self.served.set()  # the first answer was waited for before anything began
            time.sleep(INTERVAL_S)

    def _is_served(self) -> bool:
        try:
            self._ask()
        except (Kafka2011Error, OSError, EOFError, ValueError):
            return False
        return True

    def stop(self) -> Waits:
        """What was noted, with the answer that is still waited for."""
        self._over = True
        return Waits([*self._waits.seconds, time.monotonic() - self._began])
