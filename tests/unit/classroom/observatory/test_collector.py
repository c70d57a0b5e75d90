"""The collector looks again whatever it finds. Issue 20 C4."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from classroom.observatory.collector import Collector
from classroom.observatory.frames import Frame
from tests.waiting import until
from zk_registry import paths
from zk_registry.brokers import encode_broker
from zk_registry.fake import FakeZooKeeper
from zk_registry.operations import Create

ANSWERS = {
    "nesting": b"[" * 200_000,
    "a list": b"[]",
    "no topics": json.dumps({"broker_id": 0, "topics": 7}).encode(),
    "a partition without segments": json.dumps({"broker_id": 0, "topics": {"t": {"partitions": {"0": {}}}}}).encode(),
    "groups of another kind": json.dumps({"broker_id": 0, "plugins": {"modern": {"groups": {"g": 1}}}}).encode(),
    "not text": b"\xff\xfe",
}


@pytest.fixture
def answering() -> Iterator[tuple[str, list[bytes]]]:
    """An address where something answers every question with the last of a list."""
    answers = [b"{}"]

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[-1])

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()


def registered(admin: bytes) -> FakeZooKeeper:
    """A registry with one broker whose admin address anybody may have written."""
    zookeeper = FakeZooKeeper()
    session = zookeeper.session()
    session.perform(Create(f"{paths.BROKER_IDS}/0", encode_broker("127.0.0.1", 9092, 1), make_parents=True))
    session.perform(Create(f"{paths.ADMIN}/0", admin, make_parents=True))
    return zookeeper


def collector(zookeeper: FakeZooKeeper, seen: list[Frame]) -> Collector:
    return Collector(zookeeper.session(), seen.append, every_s=0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize("admin", [b"[", b"[::1", b"host:port", b"a b:1", b"\xff:1", b"http://x/:1", b"x" * 9000, b""])
def test_a_bad_admin_address_does_not_end_it(admin: bytes) -> None:
    """Issue 20 C4: whatever stands in ZooKeeper as an admin address, the next frame comes."""
    seen: list[Frame] = []
    one = collector(registered(admin), seen)
    one.start()
    until(lambda: len(seen) > 2, "frames keep coming")
    one.stop()

    assert seen[-1]["brokers"]["0"]["connections"] is None


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_stranger_s_answer_does_not_end_it(answering: tuple[str, list[bytes]], answer: bytes) -> None:
    """Issue 20 C4: what is not a broker's answer is shown as none."""
    address, answers = answering
    answers.append(answer)
    with ThreadPoolExecutor(2) as pool:
        frame = collector(registered(address.encode()), []).look(pool)

    assert frame["topics"] == {} and frame["brokers"]["0"]["connections"] is None
