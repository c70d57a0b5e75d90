"""A Spark cluster of several processes runs the load from the packaged wheel, as docs/etl.md says (§4)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from hadoop_etl.spark import PACKAGES, package_zip
from kafka2011.child import die_with_parent
from kafka2011.testing import BrokerProcess
from tests.integration.etl import witness
from tests.integration.etl.conftest import BROKER, QUICK_JVM, Town, filled
from tests.integration.etl.snippets import REPOSITORY, command, with_options
from tests.waiting import until
from zk_registry.java import java_home_for_spark

# A build, an installation and five JVMs on a busy machine; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(600)

CONF = {
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.executor.memory": "512m",
    # Copies of tasks at any moment must change nothing.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, built by the documented command from a copy of the sources."""
    tree = tmp_path_factory.mktemp("tree")
    for package in (*PACKAGES, "classroom"):
        shutil.copytree(REPOSITORY / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    words = command("pip wheel", "spark://")
    subprocess.run([sys.executable, "-m", *words], cwd=tree, check=True, capture_output=True, timeout=300)
    (built,) = (tree / "dist").iterdir()
    assert fnmatch(f"dist/{built.name}", command("kafka2011 etl run", "spark://")[-1])
    return built


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has what executors need, and none of this project's packages."""
    home = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=120)
    (site,) = home.glob("lib/python*/site-packages")
    # A path named here is searched, but its own .pth files (the editable installation) are not looked at.
    (site / "dependencies.pth").write_text("\n".join({sysconfig.get_path(k) for k in ("purelib", "platlib")}))
    python = home / "bin" / "python"
    for package in ("hadoop_etl", "kafka2011"):
        words = [python, "-c", f"import {package}"]
        tried = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False)
        assert f"No module named '{package}'" in tried.stderr
    return python


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A standalone master and two workers on loopback, from the pip package; yields the master's URL.

    The workers have addresses of their own: Spark never runs a copy of a task on the host of the first attempt.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "JAVA_HOME": str(java_home_for_spark()),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
        "PYTHONPATH": "",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, host: str, *arguments: str) -> Path:
        log = tmp_path / f"{host}.{kind}.log"
        words = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host]
        with open(log, "wb") as output:
            started.append(
                subprocess.Popen(
                    [*words, "--webui-port", "0", *arguments],
                    stdout=output,
                    stderr=output,
                    env=environment | {"SPARK_LOCAL_IP": host},
                    preexec_fn=die_with_parent,
                )
            )
        return log

    def words(log: Path, mark: str) -> list[str]:
        return [line for line in log.read_text(errors="replace").splitlines() if mark in line]

    try:
        log = start("master.Master", "127.0.0.1", "--port", "0")
        (line, *_) = until(lambda: words(log, "Starting Spark master at"), "the master listens")
        url = line.rpartition(" ")[2].strip()
        shape = ("--cores", "1", "--memory", "700m", "--work-dir", str(tmp_path / "work"))
        logs = [start("worker.Worker", host, *shape, url) for host in ("127.0.0.2", "127.0.0.3")]
        for log in logs:
            until(lambda log=log: words(log, "Successfully registered"), "a worker registers")
        yield url
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_cluster_runs_the_load_from_the_wheel(
    cluster: str, wheel: Path, bare_python: Path, zk_connect: str, tmp_path: Path
) -> None:
    """Driver and executors know this project from its wheel alone; a task speculated upon counts once (§4)."""
    site, marks = tmp_path / "site", tmp_path / "marks"
    marks.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    driver = shutil.copy(witness.__file__, tmp_path / "etl.py")
    words = command("kafka2011 etl run", "spark://")
    with BrokerProcess(tmp_path / "data", BROKER | {"zk.connect": zk_connect, "num.partitions": 2}) as broker:
        town = filled(Town(broker, tmp_path))
        words = with_options(words, z=zk_connect, w=town.warehouse.root, master=cluster, py_files=str(wheel))
        more = ["--split-bytes", "4000", *(part for item in CONF.items() for part in ("--conf", "=".join(item)))]
        loaded = subprocess.run(
            [str(bare_python), str(driver), *words[1:], *more],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(site), "PYSPARK_PYTHON": str(bare_python), "WITNESS_MARKS": str(marks)},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert loaded.returncode == 0, loaded.stderr
        town.check()
    said = json.loads((marks / "driver.json").read_text())
    assert said["packages"] == [str(site / "hadoop_etl" / "__init__.py")]
    tasks = [json.loads(path.read_text()) for path in marks.glob("*-*.json")]
    sent = f"{wheel.stem}.zip"
    for task in tasks:
        assert all(f"/{sent}/" in file for file in task["packages"]), task
        assert task["python"] == str(bare_python)
    directories = {task["directory"] for task in tasks}
    assert len(directories) == 2, "both workers ran tasks"
    assert all((Path(directory) / sent).is_file() for directory in directories), "each was sent the wheel"
    attempts = Counter(task["place"] for task in tasks)
    assert attempts["0-0-0"] >= 2, "Spark started a copy of the task that was slow"
    named = {Path(uri).name for uri in town.table.open().file_uris()}
    written = {path.name for path in Path(town.table.uri).rglob(f"*-{town.sent[0][0]}-0-*.parquet")}
    assert written > named & written, "the copy that lost left its file behind, unseen"


def test_without_py_files_the_installed_packages_are_sent() -> None:
    """The zip a cluster is sent by default holds all four packages and their data files."""
    with zipfile.ZipFile(package_zip()) as archive:
        names = set(archive.namelist())
    assert {"kafka2011/client.py", "hadoop_etl/task.py", "hadoop_etl/report.html", "zk_registry/py.typed"} <= names
