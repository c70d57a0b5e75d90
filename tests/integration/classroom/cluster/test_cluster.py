"""``kafka2011 cluster``: brought up, broken, told the truth about, healed, taken down, each by its own command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka2011.child import is_alive
from kafka2011.client import BrokerConnection
from kafka2011.wire import AckLevel, decode_set, encode_set
from tests.unhandled import check_cluster
from tests.waiting import until
from zk_registry import paths
from zk_registry.operations import Get
from zk_registry.session import ZooKeeperSession


def cluster(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command, as a shell would run it."""
    command = [sys.executable, "-m", "kafka2011", "cluster", arguments[0], "--dir", str(directory), *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)


def status(directory: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the rows by name."""
    answer = cluster(directory, "status", "--json")
    return answer.returncode, {row["name"]: row for row in json.loads(answer.stdout)}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where a cluster may be; what is left of it afterwards is stopped."""
    yield tmp_path / "cluster"
    cluster(tmp_path / "cluster", "down")
    check_cluster(tmp_path / "cluster")


def test_a_cluster_outlives_its_shell_and_is_healed_after_kill_9(directory: Path) -> None:
    """Up, kill -9 of a broker, status tells the truth, up heals it, and the flushed messages are still there (§3.2)."""
    size = ("--brokers", "2", "--partitions", "1", "--set", "log.flush.interval=1")
    up = ("up", *size, "--any-ports", "--no-observatory")
    began = cluster(directory, *up)
    assert began.returncode == 0, began.stderr
    code, rows = status(directory)
    assert code == 0
    assert {name: row["state"] for name, row in rows.items()} == dict.fromkeys(
        ("zookeeper", "broker-0", "broker-1"), "running"
    )
    host, _, port = rows["broker-0"]["address"].partition(":")
    with BrokerConnection(host, int(port)) as broker:
        broker.produce("greetings", 0, encode_set([b"hello"]))
        until(lambda: broker.fetch("greetings", 0, 0), "the message is flushed")

    pid = int(rows["broker-0"]["pid"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), "the broker is dead")
    code, rows = status(directory)
    assert code == 1
    assert rows["broker-0"]["state"] == "dead"
    assert rows["broker-1"]["state"] == "running"

    healed = cluster(directory, *up)
    assert healed.returncode == 0, healed.stderr
    code, rows = status(directory)
    assert code == 0
    assert rows["broker-0"]["pid"] not in (None, pid)
    host, _, port = rows["broker-0"]["address"].partition(":")
    with BrokerConnection(host, int(port)) as broker:
        assert [message.payload for message in decode_set(broker.fetch("greetings", 0, 0))] == [b"hello"]

    assert cluster(directory, "down", "--erase").returncode == 0
    assert not directory.exists()
    assert not [row for row in rows.values() if is_alive(int(row["pid"]))]


def test_what_is_paused_goes_on(directory: Path) -> None:
    """`cluster status` says that `up` heals what is not well: a paused broker and ZooKeeper, too (issue 22, A1)."""
    up = ("up", "--brokers", "1", "--partitions", "1", "--any-ports", "--no-observatory")
    assert cluster(directory, *up).returncode == 0
    for name in ("broker-0", "zookeeper"):
        assert cluster(directory, "kill", name, "--how", "pause").returncode == 0
    code, rows = status(directory)
    assert code == 1 and {row["state"] for row in rows.values()} == {"paused"}

    again = cluster(directory, *up)
    assert again.returncode == 0, again.stderr
    assert "broker-0 was paused; it goes on" in again.stderr and "zookeeper was paused; it goes on" in again.stderr
    assert {row["state"] for row in status(directory)[1].values()} == {"running"}


START_AS_THE_PAGE_DOES = """
import sys
from pathlib import Path
from classroom.observatory.faults import Faults
print(Faults(Path(sys.argv[1])).strike("start", "broker-0"))
"""


def test_a_broker_the_page_started_belongs_to_the_cluster(directory: Path) -> None:
    """Issue 22 B11: it outlives the process that started it, and `cluster down` stops it with the rest, cleanly."""
    up = ("up", "--brokers", "1", "--partitions", "1", "--any-ports", "--no-observatory")
    assert cluster(directory, *up).returncode == 0
    assert cluster(directory, "kill", "broker-0", "--how", "stop").returncode == 0
    until(lambda: status(directory)[1]["broker-0"]["state"] == "dead", "the broker has stopped")

    page = [sys.executable, "-c", START_AS_THE_PAGE_DOES, str(directory)]
    assert subprocess.run(page, capture_output=True, text=True, timeout=150).stdout == "broker-0 is back\n"
    code, rows = status(directory)
    assert (code, rows["broker-0"]["state"]) == (0, "running")

    down = cluster(directory, "down")
    assert "stopped broker-0" in down.stderr and not is_alive(int(rows["broker-0"]["pid"]))
    assert (directory / "broker-0" / ".kafka_cleanshutdown").exists()


def test_a_name_that_is_not_there_is_refused(directory: Path) -> None:
    """Killing something the cluster does not have is an error that names what it has."""
    refused = cluster(directory, "kill", "broker-9")

    assert refused.returncode == 1
    assert "there is no 'broker-9'" in refused.stderr


def test_a_standby_goes_on_where_its_leader_was_killed(directory: Path) -> None:
    """``--standbys 1``: kill -9 of a broker's first member, and another member leads with what was acknowledged; ``up``
    brings the dead one back (issue 27, build 7)."""
    options = ("--brokers", "1", "--standbys", "1", "--set", "produce.acks.enable=true")
    began = cluster(directory, "up", *options, "--any-ports", "--no-observatory")
    assert began.returncode == 0, began.stderr
    _, rows = status(directory)
    assert set(rows) == {"zookeeper", "broker-0", "broker-0-b"}
    ports = {name: int(rows[name]["address"].rpartition(":")[2]) for name in ("broker-0", "broker-0-b")}
    with ZooKeeperSession(rows["zookeeper"]["address"]) as session:
        until(lambda: b'"b"' in session.perform(Get(paths.standby(0))).value, "both are in sync")
    with BrokerConnection("127.0.0.1", ports["broker-0"], timeout_s=60.0) as first:
        first.produce_acked("greetings", 0, encode_set([b"hello"]), AckLevel.ALL)

    os.kill(int(rows["broker-0"]["pid"]), signal.SIGKILL)
    with BrokerConnection("127.0.0.1", ports["broker-0-b"], connect_timeout_s=60.0) as second:
        data = until(lambda: second.fetch("greetings", 0, 0), "the standby shows it")
    assert [message.payload for message in decode_set(data)] == [b"hello"]

    healed = cluster(directory, "up", "--no-observatory")
    assert healed.returncode == 0, healed.stderr
    assert status(directory)[1]["broker-0"]["state"] == "running"
