"""A schema for JSON events that have none: what a sample of them looks like.

Paper: §4 (there, every event has a registered schema; this is for topics that have not).

The types seen are counted, field by field, and then chosen: the type of nearly all events, so that one odd event never
decides about a column (it will be a dead row), and JSON text where events really differ. What no column can hold is
left out of the schema; the load keeps it in ``extra``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hadoop_etl.decode.bounds import is_beyond_json
from hadoop_etl.schema import JSON_TEXT, folded
from kafka2011.avro import Schema

MAX_COLUMNS = 1000
"""Fields of a topic that become columns; the most frequent ones."""
MAX_MEMBERS = 200
"""Different keys of a nested object; one that has more is a dictionary of data, and is kept as text."""
MAX_NESTED = 16
"""Levels of a column's type: what is nested deeper is kept as text."""
MAX_NAME = 255
ODD_SHARE = 0.05
"""A type that so few events have, or only one, does not count."""

_MOST_NODES = 50_000


def infer(payloads: Sequence[bytes], topic: str) -> Schema:
    """An event schema for JSON payloads without one: the fields seen in a sample, all of them nullable."""
    seen = _Seen(_Room(_MOST_NODES))
    for payload in payloads:
        event = _event(payload)
        if event is not None:
            seen.add(event, 0)
    return {"type": "record", "name": "Event", "doc": f"inferred from {topic}", "fields": seen.columns()}


def _event(payload: bytes) -> dict[str, Any] | None:
    """The object in a payload. An undecodable message has nothing to teach; the load will quarantine it."""
    if is_beyond_json(payload):
        return None
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def may_be_column(name: str) -> bool:
    """Tell whether every reader of the warehouse can name such a column; half of a surrogate pair none can."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


class _Room:
    """How much more may be remembered; a flood of names must not fill the memory."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


class _Seen:
    """What was seen at one place of the events. Thread: one."""

    __slots__ = ("_fields", "_items", "_kinds", "_room")

    def __init__(self, room: _Room) -> None:
        self._room = room
        self._kinds: Counter[str] = Counter()
        self._fields: dict[str, _Seen] = {}
        self._items: _Seen | None = None

    def add(self, value: Any, depth: int) -> None:
        kind = _kind(value)
        self._kinds[kind] += 1
        if depth >= MAX_NESTED:
            return
        if kind == "record":
            for name, part in value.items():
                if name not in self._fields and may_be_column(name) and self._room.take():
                    self._fields[name] = _Seen(self._room)
                if name in self._fields:
                    self._fields[name].add(part, depth + 1)
        elif kind == "array":
            self._items = self._items or _Seen(self._room)
            for part in value:
                self._items.add(part, depth + 1)

    def columns(self) -> list[dict[str, Any]]:
        """The fields of the events themselves."""
        names: Iterable[str] = self._fields
        if len(self._fields) > MAX_COLUMNS:
            often = sorted(self._fields, key=lambda name: -self._fields[name]._kinds.total())
            kept = set(often[:MAX_COLUMNS])
            names = (name for name in self._fields if name in kept)
        room = _Room(_MOST_NODES)
        return [_nullable(name, self._fields[name].type(0, room)) for name in names]

    def type(self, depth: int, room: _Room) -> Any:
        """The type of a column that holds what was seen."""
        kind = self._usual()
        if kind in ("record", "array") and (depth >= MAX_NESTED or not room.take()):
            return JSON_TEXT
        if kind == "record":
            distinct: dict[str, str] = {}
            for name in self._fields:
                distinct.setdefault(folded(name), name)
            if not 0 < len(distinct) <= MAX_MEMBERS:
                return JSON_TEXT
            fields = [_nullable(name, self._fields[name].type(depth + 1, room)) for name in distinct.values()]
            return {"type": "record", "name": "Record", "fields": fields}
        if kind == "array":
            items = self._items.type(depth + 1, room) if self._items is not None else "null"
            return {"type": "array", "items": items}
        return kind

    def _usual(self) -> Any:
        """The kind nearly all values are of; JSON text if there is none."""
        kinds = Counter({kind: n for kind, n in self._kinds.items() if kind not in ("null", "empty")})
        if not kinds:
            return JSON_TEXT if self._kinds["empty"] else "null"
        if kinds["double"] and kinds["long"]:
            kinds["double"] += kinds.pop("long")
        (usual, most), *rest = kinds.most_common()
        odd = sum(n for _, n in rest)
        if usual == "huge":
            return JSON_TEXT
        return usual if odd < most and odd <= max(1, ODD_SHARE * (most + odd)) else JSON_TEXT


def _nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if -(2**63) <= value < 2**63 else "huge"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if not value:
        return "empty"  # [] and {} fit whatever the others hold
    return "record" if isinstance(value, dict) else "array"
