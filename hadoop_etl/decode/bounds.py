"""What a payload may ask of a parser, checked before any parser sees it.

A parser that calls itself for every bracket can be made to overrun its stack by a few kilobytes, and takes the process
with it; one that makes an object for every comma can be made to fill the memory. So depth, number of values and size
are counted first, here, by code that neither calls itself nor makes anything: a payload beyond the limits is a dead
row like any other that cannot be read.

Whatever a parser does, it reads from left to right: up to the first byte that is wrong it sees the same strings and
brackets as the count here, and there it stops. So the count is never too low.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json import detect_encoding

import numpy as np
import numpy.typing as npt

from kafka2011.avro_walk import MAX_DEPTH, MAX_VALUES

MAX_SIZE = 16 << 20
"""Bytes of one payload that is to be taken apart; raw topics take any."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


def too_large(bounds: Ints) -> dict[int, str]:
    """The payloads no parser is given, by their place: those that are too long."""
    sizes = np.diff(bounds)
    return {
        int(i): f"too large to be taken apart: {sizes[i]} bytes, {MAX_SIZE} are allowed"
        for i in np.flatnonzero(sizes > MAX_SIZE)
    }


def beyond_json(raw: Bytes, bounds: Ints) -> dict[int, str]:
    """The JSON payloads no parser is given, by their place, with the reason."""
    found = too_large(bounds)
    # Brackets and commas inside strings count here too: only a payload that has suspiciously many is looked at closely.
    deep = _occurrences(raw, bounds, b"[{") > MAX_DEPTH
    wide = np.zeros(len(deep), dtype=np.bool_)
    if (np.diff(bounds) > MAX_VALUES).any():
        wide = _occurrences(raw, bounds, b",:[{") > MAX_VALUES
    for i in np.flatnonzero(deep | wide):
        place = int(i)
        if place not in found:
            reason = _measure(raw[bounds[place] : bounds[place + 1]].tobytes())
            if reason is not None:
                found[place] = reason
    return found


def is_beyond_json(payload: bytes) -> bool:
    """Tell the same of one payload."""
    raw = np.frombuffer(payload, dtype=np.uint8)
    return bool(beyond_json(raw, np.array([0, len(payload)], dtype=np.int64)))


def _occurrences(raw: Bytes, bounds: Ints, wanted: bytes) -> Ints:
    """How many of these bytes each payload holds."""
    first, last = int(bounds[0]), int(bounds[-1])
    content = raw[first:last]
    hits = content == wanted[0]
    for byte in wanted[1:]:
        hits |= content == byte
    places = np.searchsorted(np.flatnonzero(hits), bounds - first)
    return np.diff(places).astype(np.int64)


def _measure(payload: bytes) -> str | None:
    """Go through one payload token by token; strings are stepped over."""
    tokens: Iterable[bytes] = (match[0] for match in _TOKEN.finditer(payload))
    if detect_encoding(payload) not in ("utf-8", "utf-8-sig"):
        # Two or four bytes a letter: where strings end cannot be told byte by byte, so every bracket counts.
        tokens = (payload[i : i + 1] for i in range(len(payload)) if payload[i] in b"[]{},:")
    depth = values = 0
    for token in tokens:
        if token in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                return f"nested too deep: more than {MAX_DEPTH} levels"
        elif token in (b"]", b"}"):
            depth -= 1
        elif token in (b",", b":"):
            values += 1
            if values > MAX_VALUES:
                return f"too wide: more than {MAX_VALUES} values"
    return None
