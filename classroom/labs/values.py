"""Values between the grader and a student's process: JSON frames, never pickles, so that an answer cannot be a program.

Both sides load this file; it needs the standard library only.

| value | on the line |
|---|---|
| None, bool, int, float, str | itself |
| bytes | ``{"b": base64}`` |
| list, tuple | a list |
| set, frozenset | ``{"s": [...]}`` |
| dict | ``{"m": [[key, value], ...]}`` |
| a dataclass of a given module | ``{"d": its name, "f": {field: value}}`` |
| an object that stays in the student's process | ``{"h": number, "t": its type}`` |
| an object that stays with the grader | ``{"p": name}`` |
| a listening socket, inherited | ``{"l": file descriptor}`` |
"""

from __future__ import annotations

import json
import struct
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False  # a student's process starts for every test: what only types need is not imported
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

MAX_FRAME = 16 << 20
_HEAD = struct.Struct(">I")
_PLAIN = (bool, int, float, str)


def pack(value: Any, other: Callable[[Any], Any]) -> Any:
    """The value as JSON can hold it; ``other`` is given what the table does not know."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {"b": b2a_base64(value, newline=False).decode()}
    if isinstance(value, list) or type(value) is tuple:
        return [pack(item, other) for item in value]
    if isinstance(value, set | frozenset):
        return {"s": [pack(item, other) for item in value]}
    if isinstance(value, dict):
        return {"m": [[pack(key, other), pack(item, other)] for key, item in value.items()]}
    return other(value)


def unpack(packed: Any, other: Callable[[dict[str, Any]], Any]) -> Any:
    """The value again; ``other`` is given the other forms."""
    if isinstance(packed, list):
        return [unpack(item, other) for item in packed]
    if not isinstance(packed, dict):
        return packed
    if "b" in packed:
        return a2b_base64(packed["b"])
    if "s" in packed:
        return {unpack(item, other) for item in packed["s"]}
    if "m" in packed:
        return {unpack(key, other): unpack(item, other) for key, item in packed["m"]}
    return other(packed)


def send(line: socket.socket, frame: dict[str, Any]) -> None:
    """Write one frame."""
    body = json.dumps(frame, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME:
        raise ValueError(f"a value of {len(body)} bytes is larger than {MAX_FRAME} bytes")
    line.sendall(_HEAD.pack(len(body)) + body)


def receive(line: socket.socket) -> dict[str, Any] | None:
    """Read one frame; None when the other side is gone."""
    head = _exactly(line, _HEAD.size)
    if head is None:
        return None
    (size,) = _HEAD.unpack(head)
    if size > MAX_FRAME:
        raise ValueError(f"a frame of {size} bytes is larger than {MAX_FRAME} bytes")
    body = _exactly(line, size)
    if body is None:
        return None
    frame = json.loads(body)
    if not isinstance(frame, dict):
        raise ValueError("a frame is a JSON object")
    return frame


def _exactly(line: socket.socket, n: int) -> bytes | None:
    parts = []
    while n:
        part = line.recv(min(n, 1 << 20))
        if not part:
            return None
        parts.append(part)
        n -= len(part)
    return b"".join(parts)
