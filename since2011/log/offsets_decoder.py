"""The records of ``__consumer_offsets`` in words, for ``kafka2011 log dump`` (``--offsets-decoder``)."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from kafka2011.errors import InvalidRequest
from since2011.wire.codec import Struct
from since2011.wire.group_records import decode_key, decode_value


def decoded(key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """What a record of the offsets topic says: its type, key and value; None if it is none that is known."""
    try:
        kind, fields = decode_key(key or b"")
        content = None if value is None else decode_value(kind, value)
    except InvalidRequest:
        return None
    return {
        "type": kind.name.lower(),
        "key": " ".join(str(each) for each in vars(fields).values()),
        "value": None if content is None else json.dumps(_plain(content)),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _plain(each) for name, each in vars(value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, UUID) else value
