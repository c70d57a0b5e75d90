"""How a topic's payloads are read: as asked for, as before, or as they look.

Paper: §4 (Avro with registered schemas). JSON topics without a schema get one from a sample; a column, once made, keeps
its type, and fields that come later are added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hadoop_etl.decode import Format
from hadoop_etl.event_time import TimeRule
from hadoop_etl.inference import MAX_COLUMNS, infer
from hadoop_etl.schema import AUDIT_SCHEMA
from kafka2011.avro import Schema, SchemaRegistry
from kafka2011.errors import ConfigError

AUDIT_TOPIC = "audit"


def choose_format(
    topic: str,
    wanted: str,
    times: Mapping[str, str],
    *,
    registry: SchemaRegistry | None,
    noted: Mapping[str, Any] | None,
    sample: Callable[[], list[bytes]],
) -> Format:
    """``wanted`` is raw, json, avro or auto; ``noted`` what the table's last load used; ``sample`` some payloads.

    ``times`` is what a person said of the events' time: time_field, time_format, time_zone, or some of them.
    """
    if topic == AUDIT_TOPIC:
        return Format("json", {0: AUDIT_SCHEMA}, TimeRule("window_start_ms", "ms"))
    time = Format.from_dict({**Format().as_dict(), **(noted or {}), **times}).time
    registered = {} if registry is None else {number: registry.schema(number) for number in registry.ids(topic)}
    if wanted == "auto":
        wanted = noted["name"] if noted else "avro" if registered else _guess(sample())
    if wanted == "avro":
        if not registered:
            raise ConfigError(f"{topic} is to be read as Avro but no schema is registered for it; give a registry")
        return Format("avro", registered, time)
    if wanted == "json":
        known = Format.from_dict(noted).schemas.get(0) if noted and noted["name"] == "json" else None
        newest = registered[max(registered)] if registered else infer(sample(), topic)
        return Format("json", {0: _extend(known, newest)}, time)
    return Format("raw", {}, time)


def _guess(payloads: list[bytes]) -> str:
    return "json" if infer(payloads, "a sample")["fields"] else "raw"


def _extend(known: Schema | None, newest: Schema) -> Schema:
    """The schema the table was made with, and whatever fields are new: a column's type stays what it was."""
    if known is None:
        return newest
    have = {f["name"] for f in known["fields"]}
    new = [f for f in newest["fields"] if f["name"] not in have]
    return {**known, "fields": [*known["fields"], *new[: max(MAX_COLUMNS - len(have), 0)]]}
