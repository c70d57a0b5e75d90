"""When an event says it happened: the time a payload carries, if it carries one.

A message of 2011 has no time of its own (§3.1); its producer put one inside. Known are events of a registered Avro
schema (§4) and JSON objects, by the name of a field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime

from kafka2011.errors import Kafka2011Error
from zk_registry.operations import Registry

DEFAULT_FIELD = "timestamp"
_MAX_JSON = 1 << 20
_UNITS_PER_MS = ((1e17, 1e6), (1e14, 1e3), (1e11, 1.0))
"""From this size on a number counts nanoseconds, microseconds, milliseconds; below it counts seconds."""


def event_time(registry: Registry | None, field: str = DEFAULT_FIELD) -> Callable[[bytes], int | None]:
    """A function from payload to ms since 1970; None where the payload says nothing of the kind."""

    def time_of(payload: bytes) -> int | None:
        record = _avro(registry, payload) if payload[:1] == b"\0" else _json(payload)
        return None if record is None else as_ms(record.get(field))

    return time_of


def as_ms(value: object) -> int | None:
    """A moment in ms since 1970, from a number (its size tells the unit) or ISO 8601 with a zone."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return None if moment.tzinfo is None else round(moment.timestamp() * 1000)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e20:
        return None
    for least, per_ms in _UNITS_PER_MS:
        if abs(value) >= least:
            return round(value / per_ms)
    return round(value * 1000)


def _avro(registry: Registry | None, payload: bytes) -> Mapping[str, object] | None:
    if registry is None:
        return None
    try:
        from zk_registry.schemas import ZooKeeperSchemaRegistry  # needs the avro extra

        return ZooKeeperSchemaRegistry(registry).decode(payload)
    except (Kafka2011Error, ModuleNotFoundError):
        return None


def _json(payload: bytes) -> Mapping[str, object] | None:
    if payload[:1] != b"{" or len(payload) > _MAX_JSON:
        return None
    try:
        record = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
