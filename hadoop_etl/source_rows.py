"""Rows of the Spark data source: what a chunk of a partition looks like to Spark.

A message that cannot be read is a row too: its bytes in ``payload``, the reason in ``error``, the event's fields null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.entries import Entries
from hadoop_etl.sorter import Batch
from kafka2011.types import BrokerPartition

BASE = pa.schema(
    [
        ("topic", pa.string()),
        ("broker", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("index", pa.int32()),
        ("next_offset", pa.int64()),
        ("payload", pa.binary()),
        ("error", pa.string()),
    ]
)


class SourceRows:
    """Makes Arrow batches with exactly the columns Spark asked for. Thread: one."""

    def __init__(self, form: Format, columns: pa.Schema, topic: str, part: BrokerPartition) -> None:
        self._decoder = make_decoder(form)
        self._decodes = any(column.name in self._decoder.columns.names for column in columns)
        self._columns = columns
        self._constant = {
            "topic": pa.scalar(topic),
            "broker": pa.scalar(part.broker_id, pa.int32()),
            "partition": pa.scalar(part.partition, pa.int32()),
        }

    def batches(self, entries: Entries) -> Iterator[pa.RecordBatch]:
        """All rows of a chunk."""
        batch = Batch.of(entries)
        dead = [(d.offset, d.index, d.next_offset, d.data, d.reason) for d in entries.dead]
        if len(batch.payload):
            kept, fields = np.arange(len(batch.payload)), {}
            if self._decodes:
                decoded = self._decoder.decode(batch.payload)
                kept = decoded.kept
                fields = {name: decoded.columns.column(name) for name in decoded.columns.column_names}
                dead += [batch.dead_row(place, reason) for place, reason in decoded.dead.items()]
            whole = len(kept) == len(batch.payload)
            own = {
                "offset": pa.array(batch.offset[kept]),
                "index": pa.array(batch.index[kept]),
                "next_offset": pa.array(batch.following[kept]),
                "payload": batch.payload if whole else batch.payload.take(pa.array(kept)),
            }
            yield from self._table({**fields, **own}, len(kept)).to_batches()
        if dead:
            names = ("offset", "index", "next_offset", "payload", "error")
            columns = zip(*dead, strict=True)
            own = {name: pa.array(list(column)) for name, column in zip(names, columns, strict=True)}
            yield from self._table(own, len(dead)).to_batches()

    def _table(self, made: Mapping[str, pa.Array], count: int) -> pa.Table:
        columns = []
        for column in self._columns:
            if column.name in made:
                columns.append(made[column.name].cast(column.type))
            elif column.name in self._constant:
                columns.append(pa.repeat(self._constant[column.name], count).cast(column.type))
            else:
                columns.append(pa.nulls(count, column.type))
        return pa.table(columns, schema=self._columns)
