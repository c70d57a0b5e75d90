"""Decode the quarantine again, after the fix: a schema that was missing, a format that was wrong, a better decoder.

Rows that can be read now move to the table in one commit, which also decides what is left in the quarantine: a message
is in one of the two, whatever dies when. Only messages that were whole are tried (``kstage`` payload); where the bytes
themselves were damaged, or deleted, there is nothing to decode.

Paper: §4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import PAYLOAD, dead_table, file_schema
from hadoop_etl.decode import Decoder, Format, make_decoder
from hadoop_etl.files import SplitFiles, WrittenFile
from hadoop_etl.plan import new_load
from hadoop_etl.quarantine import Change
from hadoop_etl.sorter import Batch, DeadRows, Sorter
from hadoop_etl.split import Split
from hadoop_etl.warehouse import TopicTable
from hadoop_etl.work import SplitResult, Work
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.types import BrokerAddress, BrokerPartition

SAMPLE = 1000


@dataclass(slots=True)
class Requeued:
    """What a requeue did, or would do: messages that can be read now, and those still dead."""

    topic: str
    version: int | None = None
    rows: int = 0
    dead: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


def sample_dead(table: TopicTable) -> list[bytes]:
    """Some payloads from the quarantine, for choosing a format."""
    rows = table.dead_rows().head(SAMPLE, columns=["value"], filter=pc.field("kstage") == PAYLOAD)
    found: list[bytes] = rows.column("value").to_pylist()
    return found


def requeue(
    table: TopicTable,
    form: Format,
    *,
    decoder: Decoder | None = None,
    dry_run: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> Requeued:
    """Decode the quarantine by ``form`` and publish what can be read; a dry run writes elsewhere and forgets it.

    What kills the ``decoder`` kills this process, unless it is one apart (``DecoderProcess``), as the command uses.
    """
    decoder = decoder or make_decoder(form)
    load = new_load(clock.wall_ms())
    if dry_run:
        with TemporaryDirectory() as elsewhere:
            again = _decode_all(_Again(table, form, decoder, load, elsewhere))
            again.files.close()
            return again.result()
    table.settle()
    table.add_columns(decoder.columns)
    number = table.state().dead
    again = _decode_all(_Again(table, form, decoder, load, None))
    result = again.result()
    if result.rows:
        result.version = table.commit(
            expected={},
            following={},
            files=again.files.close(),
            dead=Change(tuple(again.left), tuple(again.taken), seen=number),
            notes={"load": load, "kind": "requeue", "format": form.as_dict()},
        )
    return result


def _decode_all(again: _Again) -> _Again:
    for file in again.table.dead_files():
        again.decode(file)
    return again


class _Again:
    """One pass over the quarantine. Thread: one."""

    def __init__(self, table: TopicTable, form: Format, decoder: Decoder, load: str, elsewhere: str | None) -> None:
        self.table, self._form, self._load, self._elsewhere = table, form, load, elsewhere
        self._decoder = decoder
        self._schema = file_schema(self._decoder.columns)
        self._by_hour = table.by_hour()
        self.files = SplitFiles(elsewhere or table.uri, f"{load}-requeue", self._schema)
        self.taken: list[WrittenFile] = []
        """Files of the quarantine that are replaced."""
        self.left: list[WrittenFile] = []
        """What replaces them: the rows that are still dead."""
        self.still_dead = 0
        self.done = SplitResult(self._work(BrokerPartition(0, 0), "1970-01-01"), 0)

    def result(self) -> Requeued:
        """What was found."""
        return Requeued(self.table.topic, None, self.done.rows, self.still_dead, dict(self.done.reasons))

    def decode(self, file: WrittenFile) -> None:
        """Decode the messages of one file; it is replaced if any can be read."""
        rows = self.table.quarantine.rows(file)
        whole = pc.equal(rows.column("kstage"), PAYLOAD)
        rest, tried, before = [rows.filter(pc.invert(whole))], rows.filter(whole), self.done.rows
        for part in sorted(set(zip(tried["kbroker"].to_pylist(), tried["kpart"].to_pylist(), strict=True))):
            mine = pc.and_(pc.equal(tried["kbroker"], part[0]), pc.equal(tried["kpart"], part[1]))
            rest.append(self._decode(tried.filter(mine), BrokerPartition(*part), file.keys["dt"]))
        if self.done.rows > before and self._elsewhere is None:
            self.taken.append(file)
            stem = f"{self._load}-requeue-{len(self.taken)}"
            self.left += self.table.quarantine.write(pa.concat_tables(rest), file.keys["dt"], stem)

    def _decode(self, rows: pa.Table, part: BrokerPartition, day: str) -> pa.Table:
        """File what can be read; returns the rows that are still dead."""
        batch = Batch(
            rows.column("value").combine_chunks(),
            *(rows.column(name).to_numpy().astype(np.int64) for name in ("koffset", "kidx", "knext")),
        )
        decoded = self._decoder.decode(batch.payload)
        dead: DeadRows = [batch.dead_row(place, reason) for place, reason in decoded.dead.items()]
        nowhere = SplitFiles(self.table.quarantine.uri, "never", rows.schema)
        dead += Sorter(self._work(part, day), self.files, nowhere, self._schema).add(batch, decoded, self.done)
        self.still_dead += len(dead)
        self.done.reasons.update(reason.partition(":")[0][:80] for *_, reason in dead)
        return dead_table(part.broker_id, part.partition, dead, PAYLOAD) if dead else rows.slice(0, 0)

    def _work(self, part: BrokerPartition, day: str) -> Work:
        """What a sorter needs to know: an event without a time stays under the day of the load that met it."""
        return Work(
            load=self._load,
            topic=self.table.topic,
            part=part,
            address=BrokerAddress(part.broker_id, "", 0),
            split=Split(0, 0, 0),
            form=self._form,
            table_uri=self.table.uri,
            dead_uri=self.table.quarantine.uri,
            by_hour=self._by_hour,
            load_day=day,
            late_before_ms=0,
            chunk_size=0,
        )
