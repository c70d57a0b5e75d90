"""Read the warehouse: as an Arrow dataset (DuckDB, pandas, polars) or as views of Spark SQL.

Always through the table's log, never by listing the directory: a listing also shows files of loads that died.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.dataset import Dataset

from hadoop_etl.columns import DEAD, DEAD_COLUMNS
from hadoop_etl.errors import WarehouseError
from hadoop_etl.warehouse import TopicTable, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def events(table: TopicTable, version: int | None = None) -> Dataset:
    """The messages, now or as of a version."""
    return table.dataset(version)


def quarantine(table: TopicTable, version: int | None = None) -> pa.Table:
    """The messages that could not be read, with reason and bytes, and the recorded gaps."""
    return table.dead_rows(version).to_table(columns=DEAD_COLUMNS.names)


def spark_table(spark: SparkSession, table: TopicTable, version: int | None = None) -> DataFrame:
    """All rows of a table as a Spark DataFrame, from the list of its files: Delta's jar is not needed.

    Spark must know the warehouse's file system. It knows HDFS; for S3 and the like it needs jars (hadoop-aws).
    """
    columns = pa.schema(table.open(version).schema().to_arrow())
    return _frame(spark, table.uri, columns, [file.path for file in table.files(version)])


def spark_quarantine(spark: SparkSession, table: TopicTable, version: int | None = None) -> DataFrame:
    """The quarantine of a table as a Spark DataFrame."""
    columns = table.quarantine.dataset([]).schema
    return _frame(spark, table.quarantine.uri, columns, [file.path for file in table.dead_files(version)])


def _frame(spark: SparkSession, uri: str, columns: pa.Schema, paths: list[str]) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(columns)
    # What everybody calls s3:// is s3a:// to Hadoop.
    base = re.sub(r"\As3://", "s3a://", uri)
    files = [f"{base}/{path}" for path in paths]
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


def view_names(topics: Iterable[str]) -> dict[str, str]:
    """The view of each topic: its name with ``_`` for what SQL does not allow, and a number if another has that name.

    SQL knows neither ``-`` nor ``.`` nor case in a name: of ``a_b``, ``a-b``, ``a.b`` and ``A_B`` the first, which is
    the one that needs no change if there is one, keeps ``a_b``, the others are ``a_b_2`` and so on.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()

    def plain(topic: str) -> str:
        return topic.replace("-", "_").replace(".", "_")

    for topic in sorted(topics, key=lambda topic: (plain(topic) != topic, topic)):
        name, number = plain(topic), 1
        # The quarantine beside it has a name too.
        while {name.lower(), f"{name}{DEAD}".lower()} & taken:
            number += 1
            name = f"{plain(topic)}_{number}"
        taken |= {name.lower(), f"{name}{DEAD}".lower()}
        found[topic] = name
    return found


def register(spark: SparkSession, warehouse: Warehouse) -> dict[str, str]:
    """Make each topic a view of this session: ``SELECT … FROM clicks``, and ``clicks__dead`` beside it.

    A view shows the version of this moment; call it again to see later loads. Returns topic to view (``view_names``).
    """
    made = view_names(warehouse.topics())
    for topic, name in made.items():
        table = warehouse.table(topic)
        spark_table(spark, table).createOrReplaceTempView(name)
        spark_quarantine(spark, table).createOrReplaceTempView(f"{name}{DEAD}")
    return made
