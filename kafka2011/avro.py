"""Events as Avro, with the id of their schema in front.

Paper: §4 ("we chose Avro … we store in each message the id of its Avro schema and the serialized bytes of the
payload"; a schema registry maps the id to the schema).

A payload is one byte 0, the schema id as an unsigned 32-bit big-endian number, then the Avro body. Every event schema
is a record with a long field ``timestamp`` in milliseconds: the audit and the warehouse go by the event's own time.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException

from kafka2011.avro_walk import AvroWalk
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.types import is_legal_name

HEAD = struct.Struct(">BI")
FIRST_BYTE = 0
TIME_FIELD = "timestamp"

Schema = Mapping[str, Any]
"""An Avro record schema as parsed JSON."""


class SchemaError(ConfigError):
    """A schema that is not a record, or does not fit the earlier ones of its topic."""


class UnknownSchema(Kafka2011Error):
    """No schema has this id."""


class InvalidEvent(Kafka2011Error):
    """A payload that is not an event of its schema."""


class SchemaRegistry(ABC):
    """Schemas by id, ids by topic. Thread: any."""

    def __init__(self) -> None:
        self._parsed: dict[int, Any] = {}
        self._walks: dict[int, AvroWalk] = {}

    @abstractmethod
    def register(self, topic: str, schema: Schema) -> int:
        """Return the schema's id; a schema already registered for the topic keeps its id."""

    @abstractmethod
    def schema(self, schema_id: int) -> Schema:
        """The schema of an id; raises UnknownSchema."""

    @abstractmethod
    def ids(self, topic: str) -> list[int]:
        """The ids of a topic's schemas, oldest first."""

    def encode(self, schema_id: int, record: Mapping[str, Any]) -> bytes:
        """The payload of one event: head and Avro body."""
        body = io.BytesIO()
        try:
            schemaless_writer(body, self._parse(schema_id), record)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InvalidEvent(f"the record does not fit schema {schema_id}: {error}") from error
        return HEAD.pack(FIRST_BYTE, schema_id) + body.getvalue()

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The record in a payload."""
        schema_id = schema_id_of(payload)
        return decode_body(self._parse(schema_id), payload[HEAD.size :], schema_id, self._walks[schema_id])

    def _parse(self, schema_id: int) -> Any:
        if schema_id not in self._parsed:
            schema = self.schema(schema_id)
            self._walks[schema_id] = AvroWalk(schema)
            self._parsed[schema_id] = parse_schema(dict(schema))
        return self._parsed[schema_id]


def schema_id_of(payload: bytes) -> int:
    """Read the head of a payload; raises InvalidEvent."""
    if len(payload) < HEAD.size or payload[0] != FIRST_BYTE:
        raise InvalidEvent(f"a payload of {len(payload)} bytes that does not begin with a zero byte and a schema id")
    _, schema_id = HEAD.unpack_from(payload)
    return int(schema_id)


def decode_body(parsed: Any, body: bytes, schema_id: int, walk: AvroWalk) -> dict[str, Any]:
    """Read one Avro body to its last byte. Bytes missing or left over, and a body that asks too much, are errors."""
    fault = walk.fault(body) if walk.is_needed else None
    if fault is not None:
        raise InvalidEvent(fault)
    stream = io.BytesIO(body)
    try:
        record: dict[str, Any] = schemaless_reader(stream, parsed, None)
    except Exception as error:
        # The library's own kinds are many, and any of them is this body's doing.
        reason = str(error) or type(error).__name__
        raise InvalidEvent(f"the body is not a record of schema {schema_id}: {reason}") from error
    left = len(body) - stream.tell()
    if left:
        raise InvalidEvent(f"{left} bytes are left after a record of schema {schema_id}")
    return record


def check_schema(topic: str, schema: Schema, earlier: Mapping[int, Schema]) -> None:
    """Refuse what is not an event record, and a field whose type changed: fields may only come and go."""
    if not is_legal_name(topic):
        raise SchemaError(f"{topic!r} is not a legal topic name")
    try:
        parse_schema(dict(schema))
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"the schema for {topic} is not Avro: {error}") from error
    if schema.get("type") != "record":
        raise SchemaError(f"the schema for {topic} must be a record; it is {schema.get('type')!r}")
    for old_id, old in earlier.items():
        types = {field["name"]: field["type"] for field in old["fields"]}
        for field in schema["fields"]:
            before = types.get(field["name"], field["type"])
            if not _compatible(before, field["type"]):
                raise SchemaError(
                    f"field {field['name']!r} of {topic} is {json.dumps(before)} in schema {old_id} and "
                    f"{json.dumps(field['type'])} here; add a field under a new name instead"
                )


_NUMBERS = ("int", "long", "float", "double")


def _compatible(before: Any, now: Any) -> bool:
    """Same type, but for nullability and the size of numbers: those share a column in the warehouse."""
    before, now = _without_null(before), _without_null(now)
    if before in _NUMBERS[:2] and now in _NUMBERS[:2]:
        return True
    return bool(before == now or (before in _NUMBERS[2:] and now in _NUMBERS[2:]))


def _without_null(kind: Any) -> Any:
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        return rest[0] if len(rest) == 1 else rest
    return kind


def canonical(schema: Schema) -> str:
    """One text per schema, to tell whether two are the same."""
    return json.dumps(schema, sort_keys=True, separators=(",", ":"))


class FileSchemaRegistry(SchemaRegistry):
    """A directory with one file ``<id>.json`` per schema; ids count from 1. Thread: any, and several processes."""

    def __init__(self, directory: Path | str) -> None:
        super().__init__()
        self.directory = Path(directory)

    def register(self, topic: str, schema: Schema) -> int:
        """Give the schema the next id. The file is written aside and linked, so an id is taken once and whole."""
        self.directory.mkdir(parents=True, exist_ok=True)
        while True:
            entries = self._entries()
            mine = {number: entry["schema"] for number, entry in entries.items() if entry["topic"] == topic}
            for number, known in mine.items():
                if canonical(known) == canonical(schema):
                    return number
            check_schema(topic, schema, mine)
            number = max(entries, default=0) + 1
            handle, draft = tempfile.mkstemp(dir=self.directory, prefix=".draft-")
            try:
                with os.fdopen(handle, "w") as file:
                    json.dump({"id": number, "topic": topic, "schema": schema}, file, indent=1)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(draft, self.directory / f"{number}.json")
                return number
            except FileExistsError:
                continue  # someone else took that number between our look and our link
            finally:
                os.unlink(draft)

    def schema(self, schema_id: int) -> Schema:
        try:
            entry = json.loads((self.directory / f"{schema_id}.json").read_text())
        except FileNotFoundError:
            raise UnknownSchema(f"no schema has id {schema_id} in {self.directory}") from None
        found: Schema = entry["schema"]
        return found

    def ids(self, topic: str) -> list[int]:
        return sorted(number for number, entry in self._entries().items() if entry["topic"] == topic)

    def _entries(self) -> dict[int, dict[str, Any]]:
        files = self.directory.glob("*.json") if self.directory.is_dir() else ()
        return {int(path.stem): json.loads(path.read_text()) for path in files if path.stem.isdecimal()}
