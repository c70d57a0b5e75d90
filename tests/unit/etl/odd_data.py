"""Load payloads through the whole load, without a broker, and compare every row with the message it came from.

What is compared: each message is there once, as a row or as a dead row; and a row holds every field of its JSON event,
in the field's column or in ``extra``, with the value it had.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from hadoop_etl.decode import Format
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.warehouse import Warehouse
from kafka2011.clock import ManualClock
from kafka2011.events import Journal
from kafka2011.wire import decode_set, encode_set
from kafka2011.wire.message import Codec
from tests.property.etl.fuzz import FakeBroker, FakeCluster

NOW_MS = 1_307_847_600_000

Key = tuple[int, int]
"""Offset and place inside a wrapper."""


class OddWarehouse:
    """A warehouse in a directory, and logs in memory. Thread: one."""

    def __init__(self, root: Path, *topics: str, **options: Any) -> None:
        self.broker = FakeBroker(topics)
        self.warehouse = Warehouse(str(root))
        self.sent: dict[str, dict[Key, bytes]] = {topic: {} for topic in topics}
        self._options = Options(**options)
        self._clock = ManualClock(NOW_MS)

    def send(self, topic: str, payloads: Sequence[bytes], codec: Codec = Codec.NONE) -> None:
        """One more segment of a topic's log."""
        log, data = self.broker.logs[topic], encode_set(payloads, codec=codec)
        start, counts = log.end, dict[int, int]()
        log.segments.append(data)
        for message in decode_set(data, start):
            index = counts.get(message.offset, 0)
            counts[message.offset] = index + 1
            self.sent[topic][message.offset, index] = message.payload

    def load(self) -> dict[str, Any]:
        """One load of all topics; returns the report."""
        self._clock.advance(3600)
        with (
            mock.patch("hadoop_etl.task.BrokerConnection", self.broker),
            mock.patch("hadoop_etl.job.BrokerConnection", self.broker),
        ):
            cluster = FakeCluster(self.broker)
            run = LoadRun(self.warehouse, cluster, InlineRunner(1), Journal(), self._options, clock=self._clock)
            return run.run(list(self.broker.logs))

    def night(self, topic: str, payloads: Sequence[bytes], codec: Codec = Codec.NONE) -> dict[str, Any]:
        """Send, load, and compare everything that was ever sent with what is there."""
        self.send(topic, payloads, codec)
        report = self.load()
        assert not report["error"], report["error"]
        assert not [t["error"] for t in report["topics"] if t["error"]], report["topics"]
        self.check(topic)
        return report

    def rows(self, topic: str) -> dict[Key, dict[str, Any]]:
        """What can be read, by message."""
        table = self.warehouse.table(topic).dataset().to_table()
        found = {(row["koffset"], row["kidx"]): row for row in table.to_pylist(maps_as_pydicts="strict")}
        assert len(found) == table.num_rows, "a message is there twice"
        return found

    def dead(self, topic: str) -> dict[Key, str]:
        """What cannot be read, by message, and why."""
        rows = self.warehouse.table(topic).dead_rows().to_table().to_pylist()
        return {(row["koffset"], row["kidx"]): row["kerror"] for row in rows}

    def check(self, topic: str) -> None:
        """Compare every message with its row."""
        rows, dead, sent = self.rows(topic), self.dead(topic), self.sent[topic]
        assert not set(rows) & set(dead)
        assert set(rows) | set(dead) == set(sent)
        table = self.warehouse.table(topic)
        form, columns = Format.from_dict(table.state().notes["format"]), table.columns()
        for key, row in rows.items():
            if form.name == "raw":
                assert row["value"] == sent[key]
            elif form.name == "json":
                event = json.loads(sent[key].decode(json.detect_encoding(sent[key])))
                event.pop(form.time.field, None)  # its own tests; as text among numbers it becomes a number
                wrong = list(differences(event, row, columns, form.column_names()))
                assert not wrong, f"{sent[key][:200]!r} is {row}: {wrong}"


def differences(
    event: Mapping[str, Any], row: Mapping[str, Any], columns: pa.Schema, names: Mapping[str, str]
) -> Iterator[str]:
    """What of an event is not in its row."""
    extra = json.loads(row["extra"]) if row.get("extra") else {}
    for name, value in event.items():
        column = names.get(name)
        if column is None:
            if name not in extra or not is_equal(extra[name], value):
                yield f"{name!r} is neither a column nor in extra"
        elif not _holds(row[column], value, columns.field(column).type, extra.get(name)):
            yield f"{column!r} holds {row[column]!r} and extra {extra.get(name)!r}, not {value!r}"


def _holds(found: Any, value: Any, kind: pa.DataType, extra: Any) -> bool:
    if value is None or found is None:
        return value is None and found is None
    if pa.types.is_string(kind):
        return bool(found == value) if isinstance(value, str) else is_equal(json.loads(found), value)
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and _holds_members(found, value, kind, extra or {})
    if pa.types.is_list(kind):
        if extra is not None:
            return is_equal(extra, value)
        return len(found) == len(value) and all(
            _holds(part, wanted, kind.value_type, None) for part, wanted in zip(found, value, strict=True)
        )
    return is_equal(found, value)


def _holds_members(found: Mapping[str, Any], value: Mapping[str, Any], kind: pa.DataType, extra: Any) -> bool:
    types = {part.name: part.type for part in kind}
    return all(
        _holds(found[name], part, types[name], extra.get(name))
        if name in types
        else name in extra and is_equal(extra[name], part)
        for name, part in value.items()
    )


def is_equal(found: Any, value: Any) -> bool:
    """Equal as JSON: 1 is not True, 1 is 1.0, and no number lost a digit."""
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, float) and isinstance(value, float) and math.isnan(found) and math.isnan(value):
        return True
    return bool(found == value)
