"""Start Spark for a load: local by default, any cluster by its master URL.

Executors need Python with pyarrow, numpy, isal and cramjam (and polars or fastavro for Avro); this project's own
packages are sent along. The page of the Spark UI is off: on a shared machine it would be open to everyone. Spark's own
log is silent: what a person needs to know of a failed task is one line, and the load says it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from zk_registry.java import java_home_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("kafka2011", "zk_registry", "consumers", "hadoop_etl")


def start_session(
    master: str = "local[*]", *, py_files: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session; ``settings`` are Spark's own and win over ours."""
    os.environ["JAVA_HOME"] = str(java_home_for_spark())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    local = master.startswith("local")
    on_this_machine = local or "127.0.0.1" in master
    if on_this_machine:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "spark.sql.session.timeZone": "UTC",
        "spark.task.maxFailures": "4",
        "spark.python.authenticate.socketTimeout": "120s",
    }
    if on_this_machine:
        ours |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if local and "," not in master:
        # local[n] runs a task once; the second number is how often it may fail.
        master = f"{master[:-1]},4]" if master.endswith("]") else "local[1,4]"
    builder = SparkSession.builder.master(master).appName("kafka2011 etl")
    for name, value in (ours | dict(settings or {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for file in py_files or ([] if local else [package_zip()]):
        session.sparkContext.addPyFile(file)
    return session


def package_zip() -> str:
    """This project's packages as one zip, as ``--py-files`` takes it; a wheel renamed to .zip does as well."""
    handle, name = tempfile.mkstemp(prefix="kafka2011-", suffix=".zip")
    with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            root = Path(__file__).parents[1] / package
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, str(Path(package) / file.relative_to(root)))
    return name
