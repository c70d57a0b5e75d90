"""Attacks that must be seen: each plants one kind of harm, and a siege that finds nothing wrong with it is no judge."""

from __future__ import annotations

import threading
import time

from benchmarks.siege.field import Broken, Field, Row
from kafka2011.wire import ProduceRequest, encode_set


def planted_stall(field: Field) -> None:
    """Every write to a log takes half a second, on the thread of the network."""
    client = field.raw()
    for _ in range(6):
        client.send(ProduceRequest("slow", 0, encode_set([b"x"])).encode())
        client.offsets("slow")


def planted_greed(field: Field) -> None:
    """With the limits switched off, half requests are kept as long and as large as they come."""
    frame = ProduceRequest("half", 0, encode_set([b"x" * 9_000_000])).encode()
    for _ in range(60):
        field.raw().socket.sendall(frame[:8_000_000])
    time.sleep(2)


def planted_death(field: Field) -> None:
    """The process is killed."""
    field.broker.kill()


def planted_silence(field: Field) -> None:
    """The process stands still, and is woken up only after eight seconds."""
    field.broker.pause()
    threading.Timer(8.0, field.broker.resume).start()


def planted_lie(field: Field) -> None:
    """The row itself finds a promise broken."""
    raise Broken("planted")


_NO_LIMITS = {"max.frames.in.flight.bytes": 10**12, "max.socket.request.bytes": 10**9, "connection.frame.ms": 10**8}

CONTROLS = (
    (Row("control: a stall", "planted", planted_stall,
         environ={"KAFKA2011_FAILPOINTS": "log.append.before_write=sleep:0.5"}), "waited"),
    (Row("control: memory without limits", "planted", planted_greed, _NO_LIMITS), "MiB more"),
    (Row("control: the process is killed", "planted", planted_death), "the process ended"),
    (Row("control: the process stands still", "planted", planted_silence), "recovered after"),
    (Row("control: a broken promise", "planted", planted_lie), "planted"),
)  # fmt: skip
"""Each with what must be found wrong."""
