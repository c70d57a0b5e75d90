"""The snippets for schedulers in docs/etl.md, run as they stand there (§4: the load is a job of every night)."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.producer.audit import Audit
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel
from kafka2011.wire.message_set import encode_set
from tests.integration.etl.conftest import BROKER, Town, event
from tests.integration.etl.snippets import block, with_options

# A scheduler's own start and a whole Spark load; this bounds a hang, nothing else.
pytestmark = pytest.mark.timeout(600)

BIN = Path(sys.executable).parent


def python_with(tool: str) -> str:
    """A Python that has a scheduler: this one, or the one that is named in the environment."""
    name = f"KAFKA2011_{tool.upper()}_PYTHON"
    found = os.environ.get(name) or (sys.executable if find_spec(tool) else None)
    if found is None:
        pytest.skip(f"{tool} is not installed; name a Python that has it in {name}")
    return found


@pytest.fixture
def audited(zk_connect: str, tmp_path: Path) -> Iterator[Town]:
    """A topic whose producer reported all it sent, on a broker that ZooKeeper knows."""
    with BrokerProcess(tmp_path / "data", BROKER | {"zk.connect": zk_connect}) as broker:
        town = Town(broker, tmp_path)
        payloads = [event(i) for i in range(100)]
        counter = Audit(lambda payload: json.loads(payload)["timestamp"], producer="web-1")
        counter.count(town.topic, payloads)
        town.send(payloads)
        with BrokerConnection(broker.host, broker.port) as connection:
            connection.produce_acked("audit", 0, encode_set(counter.take()), AckLevel.FLUSHED)
        yield town


def script(town: Town, zk_connect: str, mark: str, epilogue: str) -> Path:
    """A snippet of the page as a file, with this test's addresses and an epilogue that runs it."""
    text = block(mark).replace("zk1:2181", zk_connect).replace("/data/warehouse", town.warehouse.root)
    # The events are of 2011: the audit's two days would be empty.
    text = text.replace("--days 2", "--days 36500").replace('"--days", "2"', '"--days", "36500"')
    path = town.root / "schedule" / "warehouse.py"
    path.parent.mkdir()
    path.write_text(f'{text}\n\nif __name__ == "__main__":\n{indent(epilogue.strip(), "    ")}\n')
    return path


def run(python: str, path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"} | environ
    return subprocess.run(
        [python, str(path)], env=environment, cwd=path.parent, capture_output=True, text=True, timeout=500, check=False
    )


def test_cron(audited: Town, zk_connect: str, tmp_path: Path) -> None:
    """The crontab line is five times and a command; that command loads, writes metrics and tells someone."""
    times, _, line = block("/etl.prom").partition("  ")
    assert re.fullmatch(r"\S+( \S+){4}", times)
    assert "%" not in line, "cron would make a newline of it"
    program, *words = shlex.split(line)
    assert program.endswith("/bin/kafka2011")
    metrics = tmp_path / "etl.prom"
    words = with_options(
        words, z=zk_connect, w=audited.warehouse.root, metrics_file=str(metrics), notify=f"cp -t {tmp_path}"
    )
    done = subprocess.run(
        [str(BIN / "kafka2011"), *words, "--master", "inline"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    audited.check()
    assert f'kafka2011_etl_rows{{topic="{audited.topic}"}} 100' in metrics.read_text()
    (report,) = tmp_path.glob("*-*.json")
    assert json.loads(report.read_text())["state"] == "committed"


def test_airflow(audited: Town, zk_connect: str, tmp_path: Path) -> None:
    """The file is a DAG of two tasks; run by Airflow, it loads every message once and the audit agrees."""
    python = python_with("airflow")
    epilogue = """
assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {"load": {"audit"}, "audit": set()}
done = dag.test()
print("STATES", sorted((task.task_id, str(task.state)) for task in done.get_task_instances()))
"""
    path = script(audited, zk_connect, "airflow.sdk", epilogue)
    settings = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(path.parent),
    }
    migrate = [python, "-m", "airflow", "db", "migrate"]
    subprocess.run(migrate, env=os.environ | settings, check=True, capture_output=True, timeout=300)
    done = run(python, path, **settings)
    assert "STATES [('audit', 'success'), ('load', 'success')]" in done.stdout, done.stdout + done.stderr
    audited.check()


def test_dagster(audited: Town, zk_connect: str, tmp_path: Path) -> None:
    """The definitions load, the schedule is nightly; the job loads every message once and its check passes."""
    python = python_with("dagster")
    epilogue = """
assert [s.cron_schedule for s in defs.schedules] == ["0 3 * * *"]
done = defs.resolve_job_def("nightly").execute_in_process()
checks = [check.passed for check in done.get_asset_check_evaluations()]
(made,) = done.get_asset_materialization_events()
rows = made.materialization.metadata["rows"].value
print("DONE", done.success, checks, rows)
"""
    (tmp_path / "dagster").mkdir()
    done = run(python, script(audited, zk_connect, "from dagster", epilogue), DAGSTER_HOME=str(tmp_path / "dagster"))
    assert re.search(r"DONE True \[True\] \d+", done.stdout), done.stdout + done.stderr
    audited.check()
