"""Read the warehouse: as an Arrow dataset (DuckDB, pandas, polars) or as views of Spark SQL.

Always through the table's log, never by listing the directory: a listing also shows files of loads that died.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Dataset

from hadoop_etl.columns import DEAD_DAY, GAP_DAY
from hadoop_etl.errors import WarehouseError
from hadoop_etl.warehouse import TopicTable, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_EVENTS = (DEAD_DAY, GAP_DAY)


def events(table: TopicTable, version: int | None = None) -> Dataset:
    """The readable messages only."""
    return table.dataset(version).filter(~pc.field("dt").isin(_NOT_EVENTS))


def quarantine(table: TopicTable, version: int | None = None) -> pa.Table:
    """The messages that could not be read, with reason and bytes, and the recorded gaps."""
    columns = ["kbroker", "kpart", "koffset", "kidx", "knext", "kerror", "value"]
    return table.dataset(version).to_table(columns=columns, filter=pc.field("dt").isin(_NOT_EVENTS))


def spark_table(spark: SparkSession, table: TopicTable, version: int | None = None) -> DataFrame:
    """All rows of a table as a Spark DataFrame, from the list of its files: Delta's jar is not needed.

    Spark must know the warehouse's file system. It knows HDFS; for S3 and the like it needs jars (hadoop-aws).
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    delta = table.open(version)
    schema = from_arrow_schema(pa.schema(delta.schema().to_arrow()))
    # What everybody calls s3:// is s3a:// to Hadoop.
    base, *files = (re.sub(r"\As3://", "s3a://", uri) for uri in (table.uri, *delta.file_uris()))
    if not files:
        return spark.createDataFrame([], schema)
    try:
        return spark.read.schema(schema).option("basePath", base).parquet(*files)
    except Exception as error:
        # Py4J raises its own kinds; the class that is missing is named in all of them.
        if "FileSystem" not in str(error):
            raise
        scheme = base.partition(":")[0]
        raise WarehouseError(
            f"this Spark has no file system for {scheme}://; start it with the jar that has one (hadoop-aws for s3a), "
            "or read the table as an Arrow dataset: hadoop_etl.reading.events"
        ) from error


def register(spark: SparkSession, warehouse: Warehouse) -> list[str]:
    """Make each topic a view of this session: ``SELECT … FROM clicks``, and ``clicks_quarantine`` beside it.

    A view shows the version of this moment; call it again to see later loads. Returns the names.
    """
    made = []
    for topic in warehouse.topics():
        name = topic.replace("-", "_").replace(".", "_")
        rows = spark_table(spark, warehouse.table(topic))
        dead = rows.dt.isin(*_NOT_EVENTS)
        rows.filter(~dead).createOrReplaceTempView(name)
        rows.filter(dead).createOrReplaceTempView(f"{name}_quarantine")
        made += [name, f"{name}_quarantine"]
    return made
