"""Random messages for any entry of the field table, and every (request, version) that is offered."""

from __future__ import annotations

import random
import uuid
from typing import Any

from since2011.wire.codec import APIS, NO_UUID, ApiKey, Struct
from since2011.wire.codec.compiled import default_of
from since2011.wire.codec.schema import Array, Field, Structure, Type

OFFERED = [(key, version) for key, api in APIS.items() for version in range(api.first, api.last + 1)]


def named(case: tuple[ApiKey, int]) -> str:
    """The name of a test case."""
    return f"{case[0].name.lower()}-v{case[1]}"


def random_body(rng: random.Random, structure: Structure, version: int) -> Struct:
    """A message with every field of ``version`` set; fields of other versions at their defaults."""
    here = {field.name for field in structure.fields if field.in_version(version) and field.tag is None}
    return Struct(
        **{
            field.name: _value(rng, field, version) if field.name in here else default_of(field)
            for field in structure.fields
        }
    )


def _value(rng: random.Random, field: Field, version: int) -> Any:
    if field.nullable_in(version) and rng.random() < 0.25:
        return None
    if field.name == "error":
        return rng.choice((0, 1, 3, 16, 25, 27, 42, 79))
    return _of_type(rng, field.type, version)


def _of_type(rng: random.Random, kind: Type, version: int) -> Any:
    if isinstance(kind, Structure):
        return random_body(rng, kind, version)
    if isinstance(kind, Array):
        return [_of_type(rng, kind.item, version) for _ in range(rng.randrange(4))]
    if kind == "str":
        return "".join(rng.choice("abc-é日") for _ in range(rng.randrange(6)))
    if kind == "bytes":
        return rng.randbytes(rng.randrange(200))
    if kind == "records":
        return rng.randbytes(rng.choice((0, 70, 300)))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "uuid":
        return rng.choice((NO_UUID, uuid.UUID(int=rng.getrandbits(128))))
    if kind == "f64":
        return rng.getrandbits(20) / 8
    # Small enough for the milliseconds an oracle turns into time spans and dates.
    bits = {"i8": 7, "i16": 15, "i32": 31, "i64": 40}[kind]
    return rng.getrandbits(bits)


def leaves(value: Any, structure: Structure, version: int) -> list[Any]:
    """The values of a message in wire order, array lengths included: what any reader of the format must see."""
    found: list[Any] = []
    for field in structure.fields:
        if field.in_version(version) and field.tag is None:
            found += _leaves(getattr(value, field.name), field.type, version)
    return found


def _leaves(value: Any, kind: Type, version: int) -> list[Any]:
    if value is None:
        return [None]
    if isinstance(kind, Structure):
        return leaves(value, kind, version)
    if isinstance(kind, Array):
        return [len(value), *(leaf for item in value for leaf in _leaves(item, kind.item, version))]
    return [value]
