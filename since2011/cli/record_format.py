"""How a record of a modern topic looks on stdout: as ``kafka2011 consume`` and kcat have it.

%t topic  %p partition  %o offset  %k key  %s value  %h headers  %T timestamp  %K size of the key  %S of the value
\\n newline  \\t tab  \\0 zero byte  %% a percent sign; sizes of null are -1, null itself prints as nothing
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Protocol

import click

from since2011.wire.records import Header


class Record(Protocol):
    """What is shown of a record, whoever read it."""

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[Header]: ...


Render = Callable[[str, int, Record], bytes]
_FIELD = re.compile(r"[%\\].", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _headers(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers)


_FIELDS: dict[str, Render] = {
    "t": lambda topic, partition, record: topic.encode(),
    "p": lambda topic, partition, record: b"%d" % partition,
    "o": lambda topic, partition, record: b"%d" % record.offset,
    "k": lambda topic, partition, record: record.key or b"",
    "s": lambda topic, partition, record: record.value or b"",
    "h": lambda topic, partition, record: _headers(record),
    "T": lambda topic, partition, record: b"%d" % record.timestamp,
    "K": lambda topic, partition, record: _size(record.key),
    "S": lambda topic, partition, record: _size(record.value),
    "%": lambda topic, partition, record: b"%",
}
_KNOWN = "there are %t %p %o %k %s %h %T %K %S %% and \\n \\t \\r \\0"


def as_json(topic: str, partition: int, record: Record) -> bytes:
    """One JSON object per line; bytes that are not UTF-8 come in base64, under a name that says so."""
    fields: dict[str, object] = {"topic": topic, "partition": partition, "offset": record.offset}
    fields["timestamp"] = record.timestamp
    for name, data in (("key", record.key), ("value", record.value)):
        fields |= _text(name, data)
    fields["headers"] = [{"name": name} | _text("value", value) for name, value in record.headers]
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text(name: str, data: bytes | None) -> dict[str, object]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data or b"").decode()}


def choose_format(template: str | None, json_lines: bool, key_delimiter: str | None) -> Render:
    """What the options ask for; by default the value and a newline."""
    if sum((template is not None, json_lines, key_delimiter is not None)) > 1:
        raise click.UsageError("--format, --json and -K exclude each other")
    if json_lines:
        return as_json
    if key_delimiter is not None:
        between = os.fsencode(key_delimiter)
        return lambda topic, partition, record: (record.key or b"") + between + (record.value or b"") + b"\n"
    return _parse("%s\\n" if template is None else template)


def _parse(text: str) -> Render:
    parts: list[bytes | Render] = []
    position = 0
    for found in _FIELD.finditer(text):
        parts.append(os.fsencode(text[position : found.start()]))
        what = found.group()
        part = _FIELDS.get(what[1]) if what[0] == "%" else _ESCAPES.get(what[1])
        if part is None:
            raise click.UsageError(f"{what} means nothing in --format with --modern; {_KNOWN}")
        parts.append(part)
        position = found.end()
    parts.append(os.fsencode(text[position:]))
    return lambda *record: b"".join(part if isinstance(part, bytes) else part(*record) for part in parts)
