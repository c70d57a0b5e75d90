"""Today's wire format: frames to values and back. No I/O.

A frame here is what follows the four-byte size. ``decode_request`` and ``encode_response`` are the server's half,
``encode_request`` and ``decode_response`` the client's. Every decode either returns or raises InvalidRequest.

See docs/modern-port.md; §23 (ApiVersions answers with a plain header).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import cast

from kafka2011.errors import InvalidRequest
from since2011.wire.codec.compiled import Struct, reader, writer
from since2011.wire.codec.primitives import NO_UUID, PACK, Part, Put, Reader
from since2011.wire.codec.schema import APIS, Api, Structure
from since2011.wire.codec.tables import ApiKey

__all__ = [
    "APIS",
    "NO_UUID",
    "Api",
    "ApiKey",
    "Header",
    "Struct",
    "UnsupportedVersion",
    "decode_header",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]


_HEAD = struct.Struct(">hhih")
LONG = 16 << 10
"""Bytes that are sent from where they are; shorter pieces are joined."""


class UnsupportedVersion(InvalidRequest):
    """A request, or a version of one, that is not offered."""


@dataclass(frozen=True, slots=True)
class Header:
    """What precedes every request. ``body_at`` is where the body begins in the frame."""

    key: int
    version: int
    correlation: int
    client_id: str | None
    body_at: int


def decode_header(frame: bytes) -> Header:
    """Read as much of the header as does not depend on the request being known."""
    if len(frame) >= _HEAD.size:
        key, version, correlation, size = _HEAD.unpack_from(frame)
        end = _HEAD.size + size
        if size >= 0 and end <= len(frame) and (name := frame[_HEAD.size : end]).isascii():
            return Header(key, version, correlation, name.decode(), end)
    # What is not as usual is read step by step, to say what is wrong with it.
    source = Reader(frame)
    key, version, correlation = source.i16(), source.i16(), source.i32()
    size = source.i16()
    client_id = None if size == -1 else source.text(size)
    return Header(key, version, correlation, client_id, source.at)


def _api(key: int, version: int) -> Api:
    try:
        api = APIS[ApiKey(key)]
    except ValueError:
        raise UnsupportedVersion(f"request key {key} is not offered") from None
    if not api.first <= version <= api.last:
        raise UnsupportedVersion(
            f"{api.key.name} version {version} is not offered; versions {api.first} to {api.last} are"
        )
    return api


def decode_request(frame: bytes, header: Header) -> Struct:
    """Read the body. Bytes after it are passed over: librdkafka's Metadata 12 for all topics has three too many."""
    api = _api(header.key, header.version)
    flexible = api.is_flexible(header.version)
    source = Reader(frame, header.body_at)
    if flexible:
        source.tags()
    body: Struct = reader(api.request, header.version, flexible)(source)
    return body


def encode_response(key: int, version: int, correlation: int, body: Struct) -> list[Part]:
    """Write an answer, the four-byte size first: long record sets are not copied, and ranges of files not read."""
    api = _api(key, version)
    flexible = api.is_flexible(version)
    parts: list[Part] = [PACK["i32"](correlation)]
    if flexible and api.key is not ApiKey.API_VERSIONS:
        parts.append(b"\0")
    return _framed(parts, api.response, version, flexible, body)


def encode_request(key: int, version: int, correlation: int, client_id: str | None, body: Struct) -> list[bytes]:
    """Write a request, the four-byte size first."""
    api = _api(key, version)
    flexible = api.is_flexible(version)
    name = None if client_id is None else client_id.encode()
    size = PACK["i16"](-1 if name is None else len(name))
    parts: list[Part] = [PACK["i16"](key), PACK["i16"](version), PACK["i32"](correlation), size, name or b""]
    if flexible:
        parts.append(b"\0")
    return [part for part in _framed(parts, api.request, version, flexible, body) if isinstance(part, bytes)]


def _framed(parts: list[Part], structure: Structure, version: int, flexible: bool, body: Struct) -> list[Part]:
    put: Put = parts.append
    writer(structure, version, flexible)(put, body)
    total = 0
    for part in parts:
        if not isinstance(part, bytes):
            break
        total += len(part)
    else:
        if total < LONG:
            return [PACK["i32"](total) + b"".join(cast("list[bytes]", parts))]
    joined: list[Part] = []
    run: list[bytes] = []
    size = 0
    for part in parts:
        if isinstance(part, bytes):
            size += len(part)
            if len(part) < LONG:
                run.append(part)
                continue
        else:
            size += part.size
        joined += (b"".join(run), part)
        run = []
    if run:
        joined.append(b"".join(run))
    # The first part is always a run of short ones: the header is.
    joined[0] = PACK["i32"](size) + cast("bytes", joined[0])
    return joined


def decode_response(key: int, version: int, frame: bytes) -> tuple[int, Struct]:
    """Read an answer: its correlation number and its body."""
    api = _api(key, version)
    flexible = api.is_flexible(version)
    source = Reader(frame)
    correlation = source.i32()
    if flexible and api.key is not ApiKey.API_VERSIONS:
        source.tags()
    body: Struct = reader(api.response, version, flexible)(source)
    return correlation, body
