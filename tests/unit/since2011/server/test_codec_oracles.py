"""The codec held against two others that read Kafka's own schemas: kio and kafka-python.

Both directions, every request and answer, every version offered (docs/modern-port.md). Neither knows the requests of a
ZooKeeper cluster's controller, which today's schemas no longer have: for them stand bytes that real brokers sent
(test_broker_codec.py). Nor version 0 of WriteTxnMarkers, which brokers at protocol 2.6 send: it is version 1 without
tagged fields.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import io
import pkgutil
import random
import uuid
from typing import Any

import kafka.protocol
import pytest
from kafka.protocol.api_message import ApiMessage
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from since2011.wire.codec import (
    APIS,
    ApiKey,
    Struct,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from since2011.wire.codec.broker_tables import BROKER_TABLE
from since2011.wire.codec.schema import parse_table
from tests.unit.since2011.server.values import OFFERED, leaves, named, random_body

ROUNDS = 12
KNOWN = [case for case in OFFERED if case[0] not in parse_table(BROKER_TABLE) and case != (ApiKey.WRITE_TXN_MARKERS, 0)]


def _body_of_request(key: ApiKey, version: int, body: Struct) -> bytes:
    flexible = APIS[key].is_flexible(version)
    return b"".join(encode_request(key, version, 7, "c", body))[4 + 11 + flexible :]


def _body_of_response(key: ApiKey, version: int, body: Struct) -> bytes:
    flexible = APIS[key].is_flexible(version) and key is not ApiKey.API_VERSIONS
    return b"".join(encode_response(key, version, 7, body))[4 + 4 + flexible :]


def _read_request(key: ApiKey, version: int, data: bytes) -> Struct:
    head = b"".join(encode_request(key, version, 7, "c", _empty(key, version)))[4 : 4 + 11]
    frame = head + (b"\0" if APIS[key].is_flexible(version) else b"") + data
    return decode_request(frame, decode_header(frame))


def _empty(key: ApiKey, version: int) -> Struct:
    return random_body(random.Random(0), APIS[key].request, version)


def _read_response(key: ApiKey, version: int, data: bytes) -> Struct:
    flexible = APIS[key].is_flexible(version) and key is not ApiKey.API_VERSIONS
    return decode_response(key, version, bytes(4) + (b"\0" if flexible else b"") + data)[1]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, set):
        return sum(1 << bit for bit in value)  # kafka-python's form of a set of operations
    return value


def _kio_leaves(value: Any) -> list[Any]:
    if dataclasses.is_dataclass(value):
        fields = [f for f in dataclasses.fields(value) if "tag" not in f.metadata]
        return [leaf for f in fields for leaf in _kio_leaves(getattr(value, f.name))]
    if isinstance(value, tuple):
        return [len(value), *(leaf for item in value for leaf in _kio_leaves(item))]
    return [_plain(value)]


def _no_zero_uuid(values: list[Any]) -> list[Any]:
    """Both read the zero uuid as None."""
    return [None if value == uuid.UUID(int=0) else value for value in values]


@pytest.mark.parametrize("case", KNOWN, ids=named)
@pytest.mark.parametrize("side", ["request", "response"])
def test_kio_and_we_read_each_other(case: tuple[ApiKey, int], side: str) -> None:
    """kio sees in our bytes what we put in, and we see it in kio's (docs/modern-port.md)."""
    key, version = case
    schema = (load_request_schema if side == "request" else load_response_schema)(int(key), version)
    structure = getattr(APIS[key], side)
    encode, read = (_body_of_request, _read_request) if side == "request" else (_body_of_response, _read_response)
    rng = random.Random(f"{key} {version} {side}")
    for _ in range(ROUNDS):
        body = random_body(rng, structure, version)
        data = encode(key, version, body)

        theirs, size = entity_reader(schema)(data, 0)
        target = io.BytesIO()
        entity_writer(schema)(target, theirs)

        assert size == len(data)
        assert _kio_leaves(theirs) == _no_zero_uuid(leaves(body, structure, version))
        assert read(key, version, target.getvalue()) == body


def _kafka_python() -> dict[tuple[int, str], Any]:
    """Its message classes by key and side."""
    found = {}
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" in module.name or ".generate" in module.name:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, ApiMessage) and value is not ApiMessage:
                key = getattr(value, "API_KEY", None)
                if isinstance(key, int):
                    found[key, "request" if value.is_request() else "response"] = value
    return found


KAFKA_PYTHON = _kafka_python()


def _container_leaves(value: Any, fields: Any, version: int) -> list[Any]:
    found: list[Any] = []
    for name, field in fields.items():
        if field.for_version_q(version) and not field.tagged_field_q(version):
            found += _field_leaves(getattr(value, name), field, version)
    return found


def _field_leaves(value: Any, field: Any, version: int) -> list[Any]:
    if value is None:
        return [None]
    inner = getattr(field, "fields", None)
    if isinstance(value, list | tuple):
        items = [_container_leaves(item, item.fields, version) if inner else [_plain(item)] for item in value]
        return [len(value), *(leaf for item in items for leaf in item)]
    return _container_leaves(value, value.fields, version) if inner else [_plain(value)]


@pytest.mark.parametrize("case", KNOWN, ids=named)
@pytest.mark.parametrize("side", ["request", "response"])
def test_kafka_python_and_we_read_each_other(case: tuple[ApiKey, int], side: str) -> None:
    """kafka-python sees in our bytes what we put in, and we see it in its (docs/modern-port.md)."""
    key, version = case
    message = KAFKA_PYTHON.get((int(key), side))
    if message is None:
        pytest.skip(f"kafka-python has no {key.name} {side}")
    structure = getattr(APIS[key], side)
    encode, read = (_body_of_request, _read_request) if side == "request" else (_body_of_response, _read_response)
    rng = random.Random(f"{key} {version} {side} again")
    for _ in range(ROUNDS):
        body = random_body(rng, structure, version)
        if key is ApiKey.API_VERSIONS and side == "response":
            body.error = 0  # it reads every answer with an error as version 0
        data = encode(key, version, body)

        theirs = message[version].decode(data)
        theirs._header = None  # it has none, and its encoder asks

        assert _container_leaves(theirs, theirs.fields, version) == _no_zero_uuid(leaves(body, structure, version))
        assert read(key, version, bytes(theirs.encode(version=version))) == body
