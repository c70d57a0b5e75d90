"""Limits, then parsing, then allocation, then disk: one table with a row for every request kind of both ports.

Issue 20 C5. That the login comes before all of it: ``tests/unit/since2011/server/test_logins.py``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kafka2011.testing import BrokerProcess
from kafka2011.wire import (
    AckedProduceRequest,
    AckLevel,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    encode_set,
)
from since2011.wire.codec import APIS, NO_UUID, ApiKey, Struct, encode_request
from since2011.wire.codec.compiled import default_of
from since2011.wire.codec.schema import Array, Structure, Type
from tests.integration.since2011.wire_client import produce_body
from tests.unit.since2011.server.test_batches import built
from tests.waiting import PATIENCE_S

TOO_LONG = "n" * 30_000
"""No topic, group, member or user may be called so."""
TOO_LARGE = (0x7FFF_FFFF).to_bytes(4, "big")
"""The size of a frame that no broker takes."""
PROMISES = b"\x7f" * 64
"""Whatever is read here as the length of a string or an array is more than there is."""


@dataclass(frozen=True)
class Kind:
    """A request kind, and a whole request of it, size included."""

    name: str
    modern: bool
    head: bytes
    whole: bytes

    def __str__(self) -> str:
        return f"{'modern' if self.modern else '2011'}-{self.name}"

    @property
    def counted_as(self) -> str:
        return f"modern_{self.name}" if self.modern else self.name


def kind_2011(name: str, request: Request) -> Kind:
    """A request of the 2011 port; its head is its key."""
    whole = request.encode()
    return Kind(name, False, whole[4:6], whole)


def kind_modern(key: ApiKey, text: str) -> Kind:
    """The newest version of a request with ``text`` in the place of every name."""
    api = APIS[key]
    body = Struct(**vars_of(api.request, api.last, text) | chosen(key, text))
    whole = b"".join(encode_request(key, api.last, 7, "test", body))
    head = 2 + 2 + 4 + 2 + len("test") + (1 if api.is_flexible(api.last) else 0)
    return Kind(key.name.lower(), True, whole[4 : 4 + head], whole)


def chosen(key: ApiKey, text: str) -> dict[str, Any]:
    """What else a request needs, to get as far as the name in it: with a good one it would be accepted."""
    if key is ApiKey.PRODUCE:
        return vars(produce_body(text, built([b"a message"])))
    if key is ApiKey.CREATE_TOPICS:
        topic = Struct(name=text, partitions=1, replication=1, assignments=[], configs=[])
        return {"topics": [topic], "validate_only": False}
    if key is ApiKey.OFFSET_COMMIT:
        return {"generation_or_epoch": -1, "member": "", "instance": None}
    if key is ApiKey.JOIN_GROUP:
        return {"member": "", "instance": None, "type": "consumer", "session_ms": 10_000, "rebalance_ms": 10_000}
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return {"instance": None, "owned": [], "regex": None, "assignor": None, "rebalance_ms": 10_000}
    return {}


def vars_of(structure: Structure, version: int, text: str) -> dict[str, Any]:
    return {
        one.name: value_of(one.type, version, text) if one.in_version(version) else default_of(one)
        for one in structure.fields
    }


def value_of(kind: Type, version: int, text: str) -> Any:
    if isinstance(kind, Structure):
        return Struct(**vars_of(kind, version, text))
    if isinstance(kind, Array):
        return [value_of(kind.item, version, text)]
    if kind in ("bytes", "records"):
        return b"refused"
    return {"str": text, "uuid": NO_UUID, "bool": True}.get(kind, 0)


def table(text: str) -> list[Kind]:
    """Every request kind of both ports."""
    produce = ProduceRequest(text, 0, encode_set([b"a message"]))
    fetch = FetchRequest(text, 0, 0, 1 << 20)
    return [
        kind_2011("produce", produce),
        kind_2011("multiproduce", MultiProduceRequest((produce, produce))),
        kind_2011("acked_produce", AckedProduceRequest(AckLevel.FLUSHED, produce)),
        kind_2011("fetch", fetch),
        kind_2011("multifetch", MultiFetchRequest((fetch, fetch))),
        kind_2011("offsets", OffsetsRequest(text, 0, -1, 1)),
        *(kind_modern(key, text) for key in sorted(APIS)),
    ]


KINDS = table(TOO_LONG)
OPTIONS = {"modern.port": 0, "log.format": "2011", "log.flush.interval": 1, "produce.acks.enable": True}


@pytest.fixture(scope="module", params=["2011", "modern"])
def broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker that accepts requests of every kind, and makes topics of either era."""
    quiet = {"log.initial.task.delay.ms": 3_600_000}
    with BrokerProcess(options=OPTIONS | quiet | {"log.format": request.param}) as process:
        yield process


def answer(broker: BrokerProcess, kind: Kind, data: bytes) -> bytes:
    """The beginning of what the broker answers; empty when it hangs up."""
    port = broker.modern_port if kind.modern else broker.port
    with socket.create_connection((broker.host, port), timeout=PATIENCE_S) as line:
        line.sendall(data)
        try:
            return line.recv(1 << 16)
        except ConnectionError:
            return b""


def handled(broker: BrokerProcess, kind: Kind) -> int:
    """How many requests of a kind were read and given to their handler."""
    return int(broker.state()["counters"]["requests"].get(kind.counted_as, 0))


def held(broker: BrokerProcess) -> dict[str, Any]:
    """Everything a request can leave behind: files, topics, groups, producers."""
    files = {str(path.relative_to(broker.log_dir)): path.stat().st_size for path in broker.log_dir.rglob("*")}
    state = broker.state()
    return {"files": files, "topics": state["topics"], "modern": state["plugins"]["modern"]}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_size_is_refused_before_anything_is_read(broker: BrokerProcess, kind: Kind) -> None:
    """Issue 20 C5: limits come first: the announced size alone ends the connection, whatever it is the size of."""
    before = handled(broker, kind)

    assert answer(broker, kind, TOO_LARGE + kind.head) == b""
    assert handled(broker, kind) == before


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_promise_is_refused_before_anything_is_made_for_it(broker: BrokerProcess, kind: Kind) -> None:
    """Issue 20 C5: parsing comes before allocation: lengths beyond the frame reach no handler."""
    before = handled(broker, kind)
    frame = kind.head + PROMISES

    assert answer(broker, kind, len(frame).to_bytes(4, "big") + frame) == b""
    assert handled(broker, kind) == before


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_refused_request_leaves_nothing(broker: BrokerProcess, kind: Kind) -> None:
    """Issue 20 C5: disk comes last: a request with a name nobody may have leaves no file, topic, group or producer."""
    before = held(broker)
    answer(broker, kind, kind.whole)

    assert held(broker) == before


def test_an_accepted_request_is_seen() -> None:
    """The table is no empty show: the same requests with a good name leave files, a topic and groups."""
    with BrokerProcess(options=OPTIONS) as broker:
        before = held(broker)
        kinds = {str(kind): kind for kind in table("fine")}
        for name in ("modern-create_topics", "2011-acked_produce", "modern-produce", "modern-offset_commit"):
            assert answer(broker, kinds[name], kinds[name].whole) != b""
            after = held(broker)
            assert after != before, name
            before = after

    assert "fine" in after["topics"] and "fine" in after["modern"]["groups"]
