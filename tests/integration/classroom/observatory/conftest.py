"""The page of a recorded run, the page of a small real cluster, and a browser to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from classroom.cluster.cli import observatory_process
from classroom.cluster.cluster import Cluster, Size
from classroom.cluster.processes import Process, Processes
from classroom.observatory.frames import save
from kafka2011.client import BrokerConnection
from kafka2011.wire import encode_set
from tests.integration.classroom.observatory.chromium import Chromium, find_chromium
from tests.unhandled import check_cluster
from tests.unit.classroom.observatory.scenes import film, frame

TOPIC = "page_views"
GROUP = "newsfeed"
PAYLOADS = [b'{"page": "/home"}', b"just bytes \xff", b'{"page": "/jobs"}']


def replay(directory: Path, recording: Path, *extra: str) -> Iterator[str]:
    """Serve a recorded run; yield ``host:port``."""
    processes = Processes(directory, with_parent=True)
    arguments = ["kafka2011", "observatory", "--replay", str(recording), "--port", "0", *extra]
    page = processes.start(Process("observatory", "observatory", arguments))
    yield f"127.0.0.1:{page.ready['port']}"
    processes.stop(["observatory"])


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page that replays three frames."""
    directory: Path = tmp_path_factory.mktemp("observatory")
    recording = directory / "run.jsonl"
    seen = film(frame(1000), frame(2000, {"0-0": "bob"}), frame(3000, {"0-0": "bob", "0-1": "bob"}))
    recording.write_bytes(b"".join(save(seen)))
    yield from replay(directory, recording)


@pytest.fixture(scope="module")
def wishing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page that allows faults, with nothing there to break."""
    directory: Path = tmp_path_factory.mktemp("wishing")
    recording = directory / "run.jsonl"
    recording.write_bytes(b"".join(save(film(frame(1000)))))
    yield from replay(directory, recording, "--allow-faults", "--cluster-dir", str(directory))


@dataclass(frozen=True, slots=True)
class Watched:
    """A cluster and the address of its page."""

    cluster: Cluster
    page: str


@pytest.fixture(scope="package")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """ZooKeeper, a broker with two partitions of one topic, two consumers, and the page with faults allowed."""
    directory: Path = tmp_path_factory.mktemp("watched")
    size = Size(zookeepers=1, brokers=1, partitions=2)
    cluster = Cluster(directory, size, settings=("log.flush.interval=1",), with_parent=True, any_ports=True)
    try:
        cluster.up()
        (broker,) = cluster.processes.of_kind("broker")
        with BrokerConnection(broker.ready["host"], broker.ready["port"]) as connection:
            for partition in (0, 1):
                connection.produce(TOPIC, partition, encode_set(PAYLOADS))
        page = observatory_process(cluster, "--allow-faults", "--allow-writes")
        page.environment["XDG_DATA_HOME"] = str(directory / "home")  # where claims that are run leave their verdicts
        common = ["--zookeeper", cluster.zookeeper, "--directory", str(directory), "--group", GROUP]
        readers = [
            Process(name, "consumer", ["classroom.demo.reader", *common, "--name", name])
            for name in ("consumer-0", "consumer-1")
        ]
        cluster.processes.start_together([page, *readers], timeout_s=120.0)
        port = cluster.processes.all["observatory"].ready["port"]
        yield Watched(cluster, f"http://127.0.0.1:{port}/")
    finally:
        cluster.down()
    check_cluster(directory)


@pytest.fixture
def browser(chromium: Chromium) -> Chromium:
    """The browser, which remembers nothing of what it complained of and asked for in other tests."""
    # Whatever page was open may lose its server meanwhile, and would complain of that.
    chromium.call("Page.navigate", url="about:blank")
    chromium.wait("location.href === 'about:blank' && document.readyState === 'complete'", "the page is blank")
    chromium.complaints.clear()
    chromium.requested.clear()
    return chromium


@pytest.fixture(scope="package")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Headless Chromium, if the machine has it."""
    if find_chromium() is None:
        pytest.skip("chromium is not installed")
    with Chromium(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium
