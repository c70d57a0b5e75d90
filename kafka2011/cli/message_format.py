"""How a message looks on stdout: a line of text, a format string as in kcat, or JSON.

    %t topic   %p partition   %o offset   %n next offset   %s payload   %x payload in hex   %S size   %% a percent sign
    \\n newline   \\t tab   \\0 zero byte   \\ backslash
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable

import click

from kafka2011.types import BrokerPartition
from kafka2011.wire import MessageAndOffset

Partition = int | BrokerPartition
Render = Callable[[str, Partition, MessageAndOffset], bytes]
"""Topic, partition (a number, or ``<broker id>-<number>``) and message to the bytes printed, line end included."""

_FIELD = re.compile(r"[%\\].", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_FIELDS: dict[str, Render] = {
    "t": lambda topic, partition, message: topic.encode(),
    "p": lambda topic, partition, message: str(partition).encode(),
    "o": lambda topic, partition, message: b"%d" % message.offset,
    "n": lambda topic, partition, message: b"%d" % message.next_offset,
    "s": lambda topic, partition, message: message.payload,
    "x": lambda topic, partition, message: message.payload.hex().encode(),
    "S": lambda topic, partition, message: b"%d" % len(message.payload),
    "%": lambda topic, partition, message: b"%",
}
_KNOWN = "there are %t %p %o %n %s %x %S %% and \\n \\t \\r \\0"


def as_line(topic: str, partition: Partition, message: MessageAndOffset) -> bytes:
    """The payload and a newline."""
    return message.payload + b"\n"


def as_json(topic: str, partition: Partition, message: MessageAndOffset) -> bytes:
    """One JSON object per line; a payload that is not UTF-8 comes as ``payload_base64``."""
    fields: dict[str, object] = {"topic": topic}
    fields["partition"] = partition if isinstance(partition, int) else str(partition)
    fields |= {"offset": message.offset, "next_offset": message.next_offset}
    try:
        fields["payload"] = message.payload.decode()
    except UnicodeDecodeError:
        fields["payload_base64"] = b64encode(message.payload).decode()
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def parse_format(text: str) -> Render:
    """Read a format string; a usage error names the first field that does not exist."""
    parts: list[bytes | Render] = []
    position = 0
    for found in _FIELD.finditer(text):
        parts.append(os.fsencode(text[position : found.start()]))
        what = found.group()
        part = _FIELDS.get(what[1]) if what[0] == "%" else _ESCAPES.get(what[1])
        if part is None:
            raise click.UsageError(f"{what} means nothing in --format; {_KNOWN}")
        parts.append(part)
        position = found.end()
    parts.append(os.fsencode(text[position:]))

    def render(topic: str, partition: Partition, message: MessageAndOffset) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(topic, partition, message) for part in parts)

    return render


def choose_format(template: str | None, json_lines: bool) -> Render:
    """What ``--format`` and ``--json`` ask for."""
    if template is not None and json_lines:
        raise click.UsageError("--format and --json exclude each other")
    if template is not None:
        return parse_format(template)
    return as_json if json_lines else as_line
