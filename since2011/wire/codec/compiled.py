"""Turn the field tree into one reader and one writer per message and version, made on first use.

See docs/modern-port.md.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from kafka2011.errors import InvalidRequest
from since2011.wire.codec.primitives import NO_UUID, PACK, WIDTH, Put, Reader, put_varint
from since2011.wire.codec.schema import Array, Field, Structure, Type

Read = Callable[[Reader], Any]
Write = Callable[[Put, Any], None]


class Struct(SimpleNamespace):
    """The fields of a message as attributes; equal when the fields are. Which there are, the table says."""


def default_of(field: Field) -> Any:
    """What a field is when its version does not have it, or when the writer left it out."""
    if field.default is not None:
        return bool(field.default) if field.type == "bool" else field.default
    if field.nullable_from == 0:
        return None
    if isinstance(field.type, Array):
        return []
    if isinstance(field.type, Structure):
        return Struct(**{inner.name: default_of(inner) for inner in field.type.fields})
    return {"str": "", "bytes": b"", "records": b"", "uuid": NO_UUID, "bool": False}.get(field.type, 0)


@cache
def reader(structure: Structure, version: int, flexible: bool) -> Read:
    """Make the function that reads ``structure`` in this version."""
    present = [
        (f.name, _read_type(f.type, version, flexible, f.nullable_in(version), f.name))
        for f in structure.fields
        if f.in_version(version) and f.tag is None
    ]
    tagged = {
        f.tag: (f.name, _read_type(f.type, version, flexible, False, f.name))
        for f in structure.fields
        if f.tag is not None and f.in_version(version)
    }
    absent = [f for f in structure.fields if f.tag is not None or not f.in_version(version)]

    def read(source: Reader) -> Struct:
        values = {name: read_one(source) for name, read_one in present}
        if flexible:
            for tag, inner in source.tags():
                if tag in tagged:
                    name, read_one = tagged[tag]
                    values[name] = read_one(inner)
        for field in absent:
            values.setdefault(field.name, default_of(field))
        return Struct(**values)

    return read


def _read_type(kind: Type, version: int, flexible: bool, nullable: bool, name: str) -> Read:
    if isinstance(kind, Structure):
        inner = reader(kind, version, flexible)
        # A nullable structure is preceded by one byte: 0xFF null, 0x01 present.
        return (lambda source: None if source.i8() < 0 else inner(source)) if nullable else inner
    if isinstance(kind, Array):
        return _read_array(kind, version, flexible, nullable, name)
    if kind in ("str", "bytes", "records"):
        return _read_sized(kind, flexible, nullable, name)
    return {
        "i8": Reader.i8,
        "i16": Reader.i16,
        "i32": Reader.i32,
        "i64": Reader.i64,
        "f64": Reader.f64,
        "bool": Reader.bool,
        "uuid": Reader.uuid,
    }[kind]


def _read_array(kind: Array, version: int, flexible: bool, nullable: bool, name: str) -> Read:
    item = _read_type(kind.item, version, flexible, False, name)
    smallest = smallest_size(kind.item, version, flexible)

    def read(source: Reader) -> list[Any] | None:
        count = source.varint() - 1 if flexible else source.i32()
        if count == -1:
            _check_null(name, nullable)
            return None
        return [item(source) for _ in range(source.count(count, smallest))]

    return read


def _read_sized(kind: str, flexible: bool, nullable: bool, name: str) -> Read:
    wide = kind != "str"

    def read(source: Reader) -> str | bytes | None:
        size = source.varint() - 1 if flexible else source.i32() if wide else source.i16()
        if size == -1:
            _check_null(name, nullable)
            return None
        return source.take(size, name) if wide else source.text(size)

    return read


def _check_null(name: str, nullable: bool) -> None:
    if not nullable:
        raise InvalidRequest(f"{name} is null, which this version does not allow")


@cache
def smallest_size(kind: Type, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this type can take: what an array length is held against."""
    if isinstance(kind, Structure):
        inner = sum(
            1 if f.nullable_in(version) and isinstance(f.type, Structure) else smallest_size(f.type, version, flexible)
            for f in kind.fields
            if f.in_version(version) and f.tag is None
        )
        return inner + flexible
    if isinstance(kind, str) and kind in WIDTH:
        return WIDTH[kind]
    return 1 if flexible else 2 if kind == "str" else 4


@cache
def writer(structure: Structure, version: int, flexible: bool) -> Write:
    """Make the function that writes ``structure`` in this version."""
    # What is left out is written as its default, which nobody changes while writing.
    present = [
        (f.name, default_of(f), _write_type(f.type, version, flexible, f.nullable_in(version), f.name))
        for f in structure.fields
        if f.in_version(version) and f.tag is None
    ]
    tagged = [
        (f.tag, f.name, _write_type(f.type, version, flexible, False, f.name))
        for f in sorted(structure.fields, key=lambda f: f.tag or 0)
        if f.tag is not None and f.in_version(version)
    ]

    def write(put: Put, value: Any) -> None:
        fields = vars(value)
        for name, default, write_one in present:
            write_one(put, fields.get(name, default))
        if flexible:
            told = [(tag, fields[name], write_one) for tag, name, write_one in tagged if fields.get(name) is not None]
            put(put_varint(len(told)) if told else b"\0")
            for tag, one, write_one in told:
                parts: list[bytes] = []
                write_one(parts.append, one)  # type: ignore[arg-type]
                data = b"".join(parts)
                put(put_varint(tag) + put_varint(len(data)) + data)

    return write


def _write_type(kind: Type, version: int, flexible: bool, nullable: bool, name: str) -> Write:
    if isinstance(kind, Structure):
        inner = writer(kind, version, flexible)

        def write_structure(put: Put, value: Any) -> None:
            if nullable:
                put(b"\xff" if value is None else b"\x01")
            if value is not None or not nullable:
                inner(put, value)

        return write_structure
    if isinstance(kind, Array):
        item = _write_type(kind.item, version, flexible, False, name)

        def write_array(put: Put, value: Any) -> None:
            if value is None:
                put(_size(None, flexible, wide=True, nullable=nullable, name=name))
                return
            put(_size(len(value), flexible, wide=True, nullable=nullable, name=name))
            for one in value:
                item(put, one)

        return write_array
    if kind in ("str", "bytes", "records"):
        wide = kind != "str"

        def write_sized(put: Put, value: Any) -> None:
            data = value.encode() if isinstance(value, str) else value
            size = None if data is None else len(data) if isinstance(data, bytes) else data.size
            put(_size(size, flexible, wide=wide, nullable=nullable, name=name))
            if size:
                put(data)

        return write_sized
    if kind == "uuid":
        return lambda put, value: put(_uuid_bytes(value))
    if kind == "bool":
        return lambda put, value: put(b"\x01" if value else b"\0")
    pack = PACK[kind]

    def write_number(put: Put, value: Any) -> None:
        try:
            put(pack(value))
        except struct.error as error:
            raise ValueError(f"{name}: {value!r} does not fit {kind}") from error

    return write_number


def _uuid_bytes(value: uuid.UUID) -> bytes:
    return value.bytes


def _size(size: int | None, flexible: bool, *, wide: bool, nullable: bool, name: str) -> bytes:
    if size is None:
        if not nullable:
            raise ValueError(f"{name} may not be null in this version")
        return b"\0" if flexible else b"\xff\xff\xff\xff" if wide else b"\xff\xff"
    if flexible:
        return put_varint(size + 1)
    return PACK["i32" if wide else "i16"](size)
