"""Read the field table into a tree: which fields a message has, of which type, in which versions.

See docs/modern-port.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from since2011.wire.codec.admin_tables import ADMIN_TABLE
from since2011.wire.codec.broker_tables import BROKER_TABLE
from since2011.wire.codec.tables import TABLE, ApiKey
from since2011.wire.codec.transaction_tables import TRANSACTION_TABLE

PRIMITIVES = frozenset({"i8", "i16", "i32", "i64", "f64", "bool", "uuid", "str", "bytes", "records"})
_TOKEN = re.compile(r"[A-Za-z_]\w*|-?\d+|[][{}:?@+=#-]")
_NEVER = 32_768
"""A version no request has: "nullable from version _NEVER on" is never nullable."""


@dataclass(frozen=True, slots=True)
class Array:
    """Some number of items of one type."""

    item: Type


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Fields in wire order. Equal only to itself: looking up its reader for every request must not walk the tree."""

    fields: tuple[Field, ...]


Type: TypeAlias = "str | Array | Structure"


@dataclass(frozen=True, slots=True)
class Field:
    """One field and the versions that have it."""

    name: str
    type: Type
    first: int = 0
    last: int = _NEVER
    nullable_from: int = _NEVER
    default: int | None = None
    tag: int | None = None
    """Its number, if it is a tagged field: then it comes after the others, and is left out where it is null."""

    def in_version(self, version: int) -> bool:
        """Tell whether ``version`` of the message has this field."""
        return self.first <= version <= self.last

    def nullable_in(self, version: int) -> bool:
        """Tell whether ``version`` may leave this field null."""
        return version >= self.nullable_from


@dataclass(frozen=True, slots=True)
class Api:
    """One request and its answer, and the versions offered."""

    key: ApiKey
    first: int
    last: int
    flexible: int
    request: Structure
    response: Structure

    def is_flexible(self, version: int) -> bool:
        """Tell whether ``version`` uses varint lengths and tagged fields."""
        return version >= self.flexible


@dataclass(slots=True)
class _Tokens:
    tokens: list[str]
    at: int = field(default=0)

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise ValueError(f"the field table has {token!r} where {expected or 'more'} was expected")
        self.at += 1
        return token

    def maybe(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False


def parse_fields(text: str) -> Structure:
    """Read one side of a table entry: ``name:str@1+ partitions:[i32]``."""
    tokens = _Tokens(_TOKEN.findall(text))
    structure = _fields(tokens)
    if tokens.peek():
        raise ValueError(f"the field table has a stray {tokens.peek()!r}")
    return structure


def _fields(tokens: _Tokens) -> Structure:
    fields = []
    while tokens.peek() not in ("", "}"):
        fields.append(_field(tokens))
    return Structure(tuple(fields))


def _field(tokens: _Tokens) -> Field:
    name = tokens.take()
    tokens.take(":")
    kind = _type(tokens)
    first, last, nullable_from, default, tag = 0, _NEVER, _NEVER, None, None
    while True:
        if tokens.maybe("?"):
            nullable_from = 0
            if tokens.peek().isdigit():
                nullable_from = int(tokens.take())
                tokens.take("+")
        elif tokens.maybe("@"):
            first = int(tokens.take())
            if not tokens.maybe("+"):
                last = -int(tokens.take())  # "2-4" reads as the numbers 2 and -4
        elif tokens.maybe("="):
            default = int(tokens.take())
        elif tokens.maybe("#"):
            tag = int(tokens.take())
        else:
            return Field(name, kind, first, last, nullable_from, default, tag)


def _type(tokens: _Tokens) -> Type:
    if tokens.maybe("["):
        item = _type(tokens)
        tokens.take("]")
        return Array(item)
    if tokens.maybe("{"):
        structure = _fields(tokens)
        tokens.take("}")
        return structure
    name = tokens.take()
    if name not in PRIMITIVES:
        raise ValueError(f"the field table has an unknown type {name!r}")
    return name


def parse_table(text: str) -> dict[ApiKey, Api]:
    """Read the whole table."""
    apis = {}
    for entry in text.strip().split("\n\n"):
        head, _, body = entry.partition("\n")
        name, versions, _, flexible = head.split()
        first, last = versions.split("-")
        request, response = body.removeprefix(">").split("\n<")
        key = ApiKey[name]
        apis[key] = Api(key, int(first), int(last), int(flexible), parse_fields(request), parse_fields(response))
    return apis


APIS = parse_table(TABLE + ADMIN_TABLE + BROKER_TABLE + TRANSACTION_TABLE)
"""Every message this broker understands, by key."""
