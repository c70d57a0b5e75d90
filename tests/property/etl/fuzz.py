"""Throw messages at the load until a night is lost: decoders of every format, with the warehouse behind them.

Every round is two nights over five topics: JSON, Avro, raw, one whose format is guessed, and a healthy one. Payloads
are random bytes, and good ones that were bent: nested, widened, cut, flipped, with odd names, odd numbers, odd times
and lengths that lie; some inside wrappers. After each night:

    it ended with exit code 0, or names the topics that failed, and the healthy topic is never one of them
    rows + dead = messages, by the report and by the tables themselves

No broker and no Spark: logs are in memory, the rest is the product. ``make fuzz-etl ARGS="--for 1h"``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from hadoop_etl.cluster import Cluster
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.warehouse import Warehouse
from kafka2011.avro import FileSchemaRegistry, Schema
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import encode_set
from kafka2011.wire.message import Codec
from tests.property.etl.machine import FakeLog

HEALTHY = "healthy"
TOPICS = ("json", "avro", "raw", "guess", HEALTHY)
FORMATS = {"json": "json", "avro": "avro", "raw": "raw", HEALTHY: "json"}
NOW_MS = 1_307_847_600_000
MEMORY = "/dev/shm"

TIME = {"name": "timestamp", "type": "long"}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": "bytes"}]}
SCHEMAS: tuple[Schema, ...] = (
    {
        "type": "record",
        "name": "Plain",
        "fields": [TIME, {"name": "s", "type": "string"}, {"name": "n", "type": "int"}],
    },
    {
        "type": "record",
        "name": "Wide",
        "fields": [
            TIME,
            {"name": "s", "type": "string"},
            {"name": "S", "type": ["null", "string"], "default": None},
            {"name": "inner", "type": INNER},
            {"name": "items", "type": {"type": "array", "items": "long"}},
            {"name": "nothing", "type": {"type": "array", "items": "null"}},
            {"name": "map", "type": {"type": "map", "values": ["null", "long", "string"]}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
            {"name": "flag", "type": "boolean"},
        ],
    },
    {"type": "record", "name": "Tree", "fields": [TIME, {"name": "node", "type": NODE}]},
)

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 0.5, 1e308, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**40, float("nan"), float("inf")),
    *("", "n/a", "\ud800", "\x00", "x" * 3000, "2011-06-12T03:00:00Z", "12/06/2011", "1e5", [], {}, [[]], {"a": {}}),
)
ODD_NAMES = ("n", "N", "ts", "TS", "dt", "value", "value_", "extra", "kerror", "", "a.b", "a b", "\ud800", "`", "É")


class FakeBroker:
    """Logs in memory, answering like a connection. Thread: any."""

    def __init__(self, topics: Iterable[str] = TOPICS) -> None:
        self.logs = {topic: FakeLog() for topic in topics}

    def __call__(self, *_: Any, **__: Any) -> FakeBroker:
        return self

    def __enter__(self) -> FakeBroker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fetch(self, topic: str, partition: int, offset: int, size: int) -> bytes:
        return self.logs[topic].fetch(offset, size)

    def close(self) -> None:
        pass


class FakeCluster(Cluster):
    """One broker, one partition of each topic."""

    def __init__(self, broker: FakeBroker) -> None:
        part = BrokerPartition(0, 0)
        super().__init__({0: BrokerAddress(0, "nowhere", 1)}, {topic: [part] for topic in broker.logs})
        self._broker = broker

    def first_offset(self, topic: str, part: BrokerPartition) -> int:
        return 0

    def boundaries(self, topic: str, part: BrokerPartition) -> list[int]:
        return self._broker.logs[topic].boundaries()

    def connection(self, broker_id: int) -> Any:
        return self._broker


class Payloads:
    """Makes payloads from a seed."""

    def __init__(self, seed: int, registry: FileSchemaRegistry) -> None:
        self._random = random.Random(seed)
        self._registry = registry
        self._ids = registry.ids("avro")
        # Many days and many names make many files and columns: in some rounds only, they are slow.
        self._span = self._random.choice((10**8,) * 9 + (10**10,))
        self._names = self._random.choice((30,) * 9 + (10**6,))

    def one(self, topic: str, oddity: float = 1.0) -> bytes:
        """A payload for a topic: mostly good, as in life; with less ``oddity``, more of them."""
        if topic == HEALTHY:
            return json.dumps({"timestamp": NOW_MS + self._random.randrange(10**8), "n": 1}).encode()
        dice = self._random.random()
        if self._random.random() >= oddity:
            dice = 0.5
        if dice < 0.02:
            return self._random.randbytes(self._random.randrange(60))
        good = self._avro() if topic == "avro" else self._json(dice)
        return self._bent(good) if dice > 0.9 else good

    def _json(self, dice: float) -> bytes:
        chance = self._random
        moment = NOW_MS + chance.randrange(self._span)
        event: dict[str, Any] = {"timestamp": moment, "n": chance.randrange(100), "s": "x"}
        if dice < 0.2:
            event[chance.choice(ODD_NAMES)] = chance.choice(ODD_VALUES)
        if dice < 0.1:
            event["timestamp"] = chance.choice(ODD_VALUES)
        if dice < 0.04:
            names = [f"k{chance.randrange(self._names)}" for _ in range(chance.randrange(30))]
            event |= {name: chance.choice(ODD_VALUES) for name in names}
        text = json.dumps(event).encode()
        if dice < 0.03:
            deep = chance.choice((10, 63, 64, 65, 200, 1200, 20_000))
            text = text[:-1] + b', "deep": ' + b"[" * deep + b"]" * chance.choice((deep, 0)) + b"}"
        return text

    def _avro(self) -> bytes:
        chance = self._random
        number = chance.choice(self._ids)
        node: Any = {"next": None}
        for _ in range(chance.randrange(4)):
            node = {"next": node}
        record = {
            "timestamp": NOW_MS + chance.randrange(self._span),
            "s": "x" * chance.randrange(9),
            "S": None,
            "n": chance.randrange(9),
            "inner": {"x": 0.5, "y": b"\xff"},
            "items": list(range(chance.randrange(4))),
            "nothing": [None] * chance.randrange(3),
            "map": {"k": chance.choice((None, 1, "v"))},
            "kind": "B",
            "day": chance.randrange(40_000),
            "at": chance.randrange(10**15),
            "price": None,
            "flag": True,
            "node": node,
        }
        return self._registry.encode(number, record | {"price": _decimal(chance.randrange(10**6))})

    def _bent(self, good: bytes) -> bytes:
        chance, data = self._random, bytearray(good)
        bend = chance.randrange(7)
        place = chance.randrange(len(data) + 1)
        if bend == 0:
            del data[place:]
        elif bend == 1 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif bend == 2:
            data[place:place] = chance.randbytes(chance.randrange(1, 9))
        elif bend == 3:
            data[place : place + 1] = _zigzag(chance.choice((-1, 2**20, 2**40, 2**62, -(2**40), -(2**63))))
        elif bend == 4:
            data[place:place] = b"\x02" * chance.choice((10, 100, 5000))
        elif bend == 5:
            data += data[: chance.randrange(len(data) + 1)]
        else:
            data = bytearray(data[:place].decode("latin-1").encode("utf-16"))
        return bytes(data)


def _decimal(number: int) -> Any:
    from decimal import Decimal

    return Decimal(number) / 100


def _zigzag(number: int) -> bytes:
    number = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class Round:
    """Two nights of one seed."""

    def __init__(self, seed: int, size: int, root: Path) -> None:
        self.seed, self._size = seed, size
        self._registry = FileSchemaRegistry(root / "schemas")
        for schema in SCHEMAS:
            self._registry.register("avro", schema)
        self._payloads = Payloads(seed, self._registry)
        self._warehouse = Warehouse(str(root / "warehouse"))
        self._broker = FakeBroker()
        self._sent = dict.fromkeys(TOPICS, 0)
        self._seen = dict.fromkeys(TOPICS, 0)

    def run(self) -> int:
        """Send, load, check, twice; returns the number of messages."""
        for _ in range(2):
            for topic in TOPICS:
                self._send(topic)
            with (
                mock.patch("hadoop_etl.task.BrokerConnection", self._broker),
                mock.patch("hadoop_etl.job.BrokerConnection", self._broker),
            ):
                options = Options(formats=FORMATS, schemas=self._registry)
                load = LoadRun(self._warehouse, FakeCluster(self._broker), InlineRunner(1), Journal(), options)
                self._check(load.run(TOPICS))
        return sum(self._sent.values())

    def _send(self, topic: str) -> None:
        chance = random.Random(f"{self.seed} {topic} {self._sent[topic]}")
        left = self._size
        while left:
            # A segment is read at once where all of it is good, and message by message where some of it is not.
            oddity, segment = chance.choice((0.0, 0.001, 0.02, 1.0)), b""
            for _ in range(chance.choice((1, 2, 20))):
                count = min(left, chance.randrange(1, 200))
                payloads = [self._payloads.one(topic, oddity) for _ in range(count)]
                segment += encode_set(payloads, codec=chance.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY)))
                left -= count
            self._broker.logs[topic].segments.append(segment)
        self._sent[topic] += self._size

    def _check(self, report: dict[str, Any]) -> None:
        where = f"seed {self.seed}"
        assert report["error"] is None, f"{where}: {report['error']}"
        failed = {topic["topic"]: topic["error"] for topic in report["topics"] if topic["error"]}
        assert HEALTHY not in failed, f"{where}: {failed}"
        assert report["exit_code"] == 0 or failed, f"{where}: exit code {report['exit_code']} names nothing"
        for topic in report["topics"]:
            name = topic["topic"]
            if name in failed:
                raise AssertionError(f"{where}: {name} failed: {failed[name]}")
            self._seen[name] += topic["rows"] + topic["dead"]
            assert self._seen[name] == self._sent[name], f"{where}: {name}: {self._seen[name]} of {self._sent[name]}"
            table = self._warehouse.table(name)
            found = table.dataset().count_rows() + table.dead_rows().count_rows()
            assert found == self._sent[name], f"{where}: {name}: {found} rows of {self._sent[name]}"


def fuzz(seed: int, size: int, is_over: Callable[[int], bool]) -> int:
    """Rounds from ``seed`` on until enough; returns the number of messages."""
    total = 0
    while not is_over(total):
        # In memory where there is such a place: the disk is not what is tried here, and most of the time would be its.
        root = Path(tempfile.mkdtemp(prefix="kafka2011-fuzz-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
        try:
            total += Round(seed, size, root).run()
        finally:
            shutil.rmtree(root)
        seed += 1
    return total


def main() -> None:
    """Fuzz for a time, saying now and then how far it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="seconds", default="60s", help="like 90s, 10m, 1h")
    parser.add_argument("--seed", type=int, default=struct.unpack("I", random.SystemRandom().randbytes(4))[0])
    parser.add_argument("--size", type=int, default=10_000, help="messages per topic and night")
    chosen = parser.parse_args()
    seconds = float(chosen.seconds[:-1]) * {"s": 1, "m": 60, "h": 3600}[chosen.seconds[-1]]
    began = said = time.monotonic()
    print(f"seed {chosen.seed}", flush=True)

    def is_over(total: int) -> bool:
        nonlocal said
        now = time.monotonic()
        if now - said > 30:
            said = now
            print(f"{now - began:.0f} s: {total} messages, 0 nights lost", flush=True)
        return now - began > seconds

    total = fuzz(chosen.seed, chosen.size, is_over)
    print(f"{total} messages in {time.monotonic() - began:.0f} s, 0 nights lost")


if __name__ == "__main__":
    main()
