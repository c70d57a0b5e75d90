"""Start Spark for a load: local by default, any cluster by its master URL.

Executors need Python with pyarrow, numpy, isal and cramjam (polars and fastavro for Avro, deltalake for a remote
warehouse); this project's own packages are sent along. On a cluster their Python is ``$PYSPARK_PYTHON``, by default the
driver's own. The page of the Spark UI is off: on a shared machine it would be open to everyone. Spark's own
log is silent: what a person needs to know of a failed task is one line, and the load says it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafka2011.errors import ConfigError
from zk_registry.java import java_home_for_spark

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

PACKAGES = ("kafka2011", "zk_registry", "since2011", "consumers", "hadoop_etl")


def start_session(
    master: str = "local[*]", *, py_files: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session, for SQL and the data source; the arguments are those of ``start_context``."""
    start_context(master, py_files=py_files, settings=settings)
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def start_context(
    master: str = "local[*]", *, py_files: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> SparkContext:
    """Spark without SQL, which is all a load needs and starts a third faster.

    ``settings`` are Spark's own and win over ours; ``py_files`` may be wheels.
    """
    local = master.startswith("local")
    packages = [_as_zip(file) for file in py_files]
    os.environ["JAVA_HOME"] = str(java_home_for_spark())
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local or not os.environ.get("PYSPARK_PYTHON"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    on_this_machine = local or "127.0.0.1" in master
    if on_this_machine:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark import SparkConf, SparkContext

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
    conf = SparkConf().setMaster(master).setAppName("kafka2011 etl")
    conf.setAll(list((ours | dict(settings or {})).items()))
    context = SparkContext.getOrCreate(conf)
    for file in packages or ([] if local else [package_zip()]):
        context.addPyFile(file)
    return context


def package_zip() -> str:
    """This project's packages as one zip, as Spark takes it; gone when this process ends."""
    path = Path(_drafts().name) / "kafka2011.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            root = Path(__file__).parents[1] / package
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, str(Path(package) / file.relative_to(root)))
    return str(path)


def _as_zip(file: str) -> str:
    """A wheel is a zip, but Spark puts only files of that name on the executors' path."""
    if not file.endswith(".whl"):
        return file
    if not Path(file).is_file():
        raise ConfigError(f"there is no wheel {file} on this machine; build it first: pip wheel --no-deps -w dist .")
    return str(shutil.copy(file, Path(_drafts().name) / f"{Path(file).stem}.zip"))


@cache
def _drafts() -> tempfile.TemporaryDirectory[str]:
    """A directory that Spark reads from while this process lives, and that goes with it."""
    return tempfile.TemporaryDirectory(prefix="kafka2011-")
