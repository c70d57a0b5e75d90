"""Walk over an Avro body without making anything of it: how deep, how many values?

Two kinds of schema let a short body ask for much. One that contains itself (a list of nodes) lets each byte be one
level deeper, and the reader calls itself for each. An array of something that takes no bytes (null, a record without
fields) lets ten bytes claim a million million items. Bodies of such schemas, and only those, are walked first, with a
stack of our own. One that cannot be walked to its end is given to no reader either: where walk and reader take a
damaged number differently (readers keep 64 bits, in which the count -2**63 has no opposite), the walk would vouch for
another body than the one that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 64
"""Levels inside each other that any payload may have."""
MAX_VALUES = 100_000
"""Values in one payload."""

_FIXED = {"boolean": 1, "float": 4, "double": 8}
_VARIABLE = ("bytes", "string")
_NUMBERS = ("int", "long", "enum")
_BLOCKS = ("array", "map")


class _Damaged(Exception):
    """The body is not what its schema says."""


class AvroWalk:
    """The walk over bodies of one schema. Thread: any."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._named: dict[str, Any] = {}
        self._recursive = False
        self._find_names(schema, ())
        self.is_needed = self._recursive or any(self._is_nothing(i, ()) for i in self._items(schema))

    def fault(self, body: bytes) -> str | None:
        """Why no reader is given this body; None if it can be read."""
        try:
            return self._fault(body)
        except IndexError:
            return "the body ends too early"
        except _Damaged as damage:
            return str(damage)

    def _fault(self, body: bytes) -> str | None:
        pending: list[tuple[Any, int]] = [(self._schema, 0)]
        position = values = 0
        while pending:
            kind, depth = pending.pop()
            values += 1
            if depth > MAX_DEPTH:
                return f"nested too deep: more than {MAX_DEPTH} levels"
            if values > MAX_VALUES:
                return f"too wide: more than {MAX_VALUES} values"
            if isinstance(kind, _Blocks):
                position = kind.step(body, position, pending, depth)
                values -= 1
                continue
            if isinstance(kind, list):
                number, position = _long(body, position)
                if not 0 <= number < len(kind):
                    raise _Damaged(f"there is no branch {number} in a choice of {len(kind)}")
                pending.append((kind[number], depth))
                continue
            name = kind if isinstance(kind, str) else kind["type"]
            if name in _FIXED:
                position += _FIXED[name]
            elif name in _NUMBERS:
                _, position = _long(body, position)
            elif name in _VARIABLE:
                size, position = _long(body, position)
                if not 0 <= size <= len(body) - position:
                    raise _Damaged(f"{size} bytes are announced where {len(body) - position} are left")
                position += size
            elif name == "fixed":
                position += kind["size"]
            elif name in _BLOCKS:
                pending.append((_Blocks(kind), depth + 1))
            elif name == "record":
                pending.extend((f["type"], depth + 1) for f in reversed(kind["fields"]))
            elif isinstance(name, (list, dict)):
                pending.append((name, depth))
            elif name != "null":
                pending.append((self._named[name], depth))
        return None

    def _find_names(self, kind: Any, outer: tuple[str, ...]) -> None:
        """Note every named type, and whether one contains itself."""
        for part in kind if isinstance(kind, list) else [kind]:
            if isinstance(part, str):
                self._recursive |= part in outer
            elif isinstance(part, Mapping):
                inside = outer
                if "name" in part:
                    self._named[part["name"]] = part
                    space = f"{part.get('namespace', '')}.".lstrip(".")
                    self._named[f"{space}{part['name']}"] = part
                    inside = (*outer, part["name"], f"{space}{part['name']}")
                for child in _children(part):
                    self._find_names(child, inside)

    def _items(self, kind: Any) -> Iterator[Any]:
        """The item types of every array, as they are written."""
        for part in kind if isinstance(kind, list) else [kind]:
            if isinstance(part, Mapping):
                if part["type"] == "array":
                    yield part["items"]
                for child in _children(part):
                    yield from self._items(child)

    def _is_nothing(self, kind: Any, seen: tuple[str, ...]) -> bool:
        """Tell whether a value of this type may take no byte at all."""
        if isinstance(kind, list):
            return False  # the number of the branch takes one
        if isinstance(kind, str):
            if kind in seen or kind not in self._named:
                return kind == "null"
            return self._is_nothing(self._named[kind], (*seen, kind))
        if kind["type"] == "fixed":
            return bool(kind["size"] == 0)
        if kind["type"] == "record":
            return all(self._is_nothing(f["type"], seen) for f in kind["fields"])
        return self._is_nothing(kind["type"], seen)


class _Blocks:
    """Where the walk is in an array or map: how many items are left of the block."""

    def __init__(self, kind: Mapping[str, Any]) -> None:
        self._inside = [kind["items"]] if kind["type"] == "array" else [kind["values"], "string"]
        self._left = 0

    def step(self, body: bytes, position: int, pending: list[tuple[Any, int]], depth: int) -> int:
        if not self._left:
            count, position = _long(body, position)
            self._left = abs(count)
            if self._left > MAX_VALUES:
                raise _Damaged(f"too wide: more than {MAX_VALUES} values")
            if count < 0:
                _, position = _long(body, position)  # how many bytes the block has
            if not self._left:
                return position
        self._left -= 1
        pending.append((self, depth))
        pending.extend((kind, depth) for kind in self._inside)
        return position


def _children(kind: Mapping[str, Any]) -> Iterator[Any]:
    yield from (f["type"] for f in kind.get("fields", ()))
    yield from (kind[key] for key in ("items", "values") if key in kind)
    if isinstance(kind["type"], (list, dict)):
        yield kind["type"]


def _long(body: bytes, position: int) -> tuple[int, int]:
    """A number in Avro's zig-zag encoding; IndexError if the body ends in it."""
    number = shift = 0
    while True:
        byte = body[position]
        position += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
        if shift > 63:
            raise _Damaged("a number of more than ten bytes")
    if number >= 1 << 64:
        raise _Damaged("a number of more than 64 bits")
    return (number >> 1) ^ -(number & 1), position
