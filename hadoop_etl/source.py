"""The Spark data source ``kafka2011``: topics as DataFrames, batch and streaming, without a jar.

    spark.dataSource.register(Kafka2011DataSource)
    spark.read.format("kafka2011").option("zookeeper", "127.0.0.1:2181").option("topic", "clicks").load()

Options are named like those of Spark's own Kafka source (docs/etl.md lists them). Rows arrive as Arrow batches; a large
partition becomes several input partitions, cut at message boundaries. Each task proves the cut at its end by walking to
it, so if all succeed no message was skipped or read twice. Spark passes no projection to Python sources: name the
columns you need with ``.schema("offset long, payload binary")`` and only those are made.

The nightly load does not use this: there the rows would cross the JVM twice, and the offsets would live apart from
the data. Paper: §3.1, §4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hadoop_etl.cluster import Cluster, open_cluster
from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.errors import RetentionGap, TilingBroken
from hadoop_etl.formats import choose_format
from hadoop_etl.plan import CHUNK_SIZE, SPLIT_SIZE
from hadoop_etl.source_rows import BASE, SourceRows
from hadoop_etl.split import Split, make_splits, walk_to
from hadoop_etl.task import read_split
from kafka2011.avro import FileSchemaRegistry
from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress, BrokerPartition

Positions = dict[str, int]
"""Offsets as Spark keeps them: ``clicks/0-1`` to a byte position."""


@dataclass(frozen=True)
class Settings:
    """The options of one DataFrame, read once. Can be pickled."""

    zookeeper: str | None
    brokers: str | None
    topics: tuple[str, ...]
    starting: str
    ending: str
    form: str
    schemas: str | None
    split_size: int
    max_bytes: int | None
    fail_on_data_loss: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Settings:
        """Read Spark's options; names are case-insensitive there."""
        topics = options.get("topic") or options.get("subscribe") or ""
        if not topics:
            raise ConfigError("the option 'topic' is missing: one topic, or several separated by commas")
        limit = options.get("maxBytesPerTrigger")
        return cls(
            options.get("zookeeper"),
            options.get("brokers"),
            tuple(name.strip() for name in topics.split(",")),
            options.get("startingOffsets", options.get("startingTimestamp", "earliest")),
            options.get("endingOffsets", options.get("endingTimestamp", "latest")),
            options.get("format", "raw"),
            options.get("schemas"),
            int(options.get("splitBytes", SPLIT_SIZE)),
            int(limit) if limit else None,
            options.get("failOnDataLoss", "true").lower() == "true",
        )

    def cluster(self) -> Any:
        """The brokers, now."""
        return open_cluster(self.zookeeper, self.brokers)

    def bounds(self, cluster: Cluster, where: str) -> Positions:
        """Offsets by name (earliest, latest), by time in ms, or as JSON {topic: {"0-1": offset}}."""
        found: Positions = {}
        given = json.loads(where) if where.startswith("{") else {}
        for topic in self.topics:
            for part in cluster.partitions(topic):
                boundaries = cluster.boundaries(topic, part)
                first, last = cluster.first_offset(topic, part), max(boundaries, default=0)
                if str(part) in given.get(topic, {}):
                    found[f"{topic}/{part}"] = int(given[topic][str(part)])
                elif where == "latest":
                    found[f"{topic}/{part}"] = last
                elif where.isdecimal():
                    before = cluster.offset_before(topic, part, int(where))
                    found[f"{topic}/{part}"] = first if before is None else max(before, first)
                else:
                    found[f"{topic}/{part}"] = first
        return found


@dataclass
class SourceSplit(InputPartition):  # type: ignore[misc]  # pyspark carries no types
    """One input partition: a split of one broker partition."""

    topic: str
    part: BrokerPartition
    address: BrokerAddress
    split: Split


class Kafka2011DataSource(DataSource):  # type: ignore[misc]  # pyspark carries no types
    """Topics of a 2011 broker for Spark."""

    @classmethod
    def name(cls) -> str:
        return "kafka2011"

    def schema(self) -> StructType:
        return from_arrow_schema(pa.schema([*BASE, *make_decoder(self._form()).columns]), prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(Settings.of(self.options), self._form(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(Settings.of(self.options), self._form(), schema)

    def _form(self) -> Format:
        """How payloads are read; found once, so that schema and rows agree."""
        known: Format | None = getattr(self, "_chosen", None)
        if known is None:
            settings = Settings.of(self.options)
            known = Format("raw") if settings.form == "raw" else self._choose(settings)
            self._chosen = known
        return known

    def _choose(self, settings: Settings) -> Format:
        registry = FileSchemaRegistry(settings.schemas) if settings.schemas else None
        topic = settings.topics[0]
        with settings.cluster() as cluster:
            starts = {
                part: (cluster.first_offset(topic, part), max(cluster.boundaries(topic, part), default=0))
                for part in cluster.partitions(topic)
            }
            sizes = {part: (first, end - first) for part, (first, end) in starts.items()}
            sample = partial(cluster.sample, topic, sizes)
            return choose_format(topic, settings.form, {}, registry=registry, noted=None, sample=sample)


class _Reading:
    """What both readers do: cut ranges and read splits."""

    def __init__(self, settings: Settings, form: Format, schema: StructType) -> None:
        self._settings, self._form = settings, form
        self._columns = to_arrow_schema(schema, timezone="UTC")

    def _splits(self, start: Positions, end: Positions) -> list[SourceSplit]:
        splits = []
        with self._settings.cluster() as cluster:
            for key, last in end.items():
                topic, _, text = key.rpartition("/")
                part = BrokerPartition.parse(text)
                first = self._first(cluster, topic, part, start.get(key))
                if first >= last:
                    continue
                fetch = partial(cluster.connection(part.broker_id).fetch, topic, part.partition)
                segments = cluster.boundaries(topic, part)
                address = cluster.address(part.broker_id)
                for split in make_splits(first, last, segments, self._settings.split_size, fetch):
                    splits.append(SourceSplit(topic, part, address, split))
        return splits

    def _first(self, cluster: Cluster, topic: str, part: BrokerPartition, wanted: int | None) -> int:
        held = cluster.first_offset(topic, part)
        if wanted is None:
            return held
        if wanted < held and self._settings.fail_on_data_loss:
            raise RetentionGap(
                f"{topic} {part}: offsets {wanted} to {held} were deleted on the broker; set failOnDataLoss to false "
                "to go on without them"
            )
        return max(wanted, held)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split. Spark calls this with an empty partition when there are none."""
        if not isinstance(partition, SourceSplit):
            return
        rows = SourceRows(self._form, self._columns, partition.topic, partition.part)
        split, reached = partition.split, partition.split.start
        for entries, position in read_split(partition.topic, partition.part, partition.address, split, CHUNK_SIZE):
            yield from rows.batches(entries)
            reached = position
        if reached != split.end:
            raise TilingBroken(
                f"{partition.topic} {partition.part}: a walk from {split.start} ended at {reached}, not at the cut "
                f"{split.end}; payloads look like message sets. Set splitBytes to more than a partition holds"
            )


class BatchReader(_Reading, DataSourceReader):  # type: ignore[misc]  # pyspark carries no types
    """Reads from the starting to the ending offsets, both fixed when the job is planned."""

    def partitions(self) -> Sequence[InputPartition]:
        with self._settings.cluster() as cluster:
            start = self._settings.bounds(cluster, self._settings.starting)
            end = self._settings.bounds(cluster, self._settings.ending)
        return self._splits(start, end)


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # pyspark carries no types
    """Reads what is new, trigger by trigger; with available-now up to what was there at the start."""

    def __init__(self, settings: Settings, form: Format, schema: StructType) -> None:
        super().__init__(settings, form, schema)
        self._target: Positions | None = None

    def initialOffset(self) -> Positions:
        with self._settings.cluster() as cluster:
            return self._settings.bounds(cluster, self._settings.starting)

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._settings.max_bytes
        return ReadAllAvailable() if limit is None else ReadMaxBytes(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        with self._settings.cluster() as cluster:
            self._target = self._settings.bounds(cluster, "latest")

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:
        with self._settings.cluster() as cluster:
            end = self._target if self._target is not None else self._settings.bounds(cluster, "latest")
            found = {**start, **{key: max(last, start.get(key, 0)) for key, last in end.items()}}
            if not isinstance(limit, ReadMaxBytes):
                return found
            behind = [key for key in found if found[key] > start.get(key, 0)]
            for key in behind:
                found[key] = self._limited(cluster, key, start.get(key), found[key], limit.max_bytes // len(behind))
            return found

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        return self._splits(start, end)

    def _limited(self, cluster: Cluster, key: str, start: int | None, end: int, budget: int) -> int:
        """The message boundary within the budget: Spark may only be told offsets at which a message begins."""
        topic, _, text = key.rpartition("/")
        part = BrokerPartition.parse(text)
        first = self._first(cluster, topic, part, start)
        if end - first <= budget:
            return end
        return walk_to(partial(cluster.connection(part.broker_id).fetch, topic, part.partition), first, max(budget, 1))
