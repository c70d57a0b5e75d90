"""The read-only HTTP port."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import ExitStack

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka2011.testing import BrokerProcess
from tests.integration.broker.client import RawClient
from tests.waiting import PATIENCE_S


def request(broker: BrokerProcess, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    assert broker.admin_port is not None
    connection = http.client.HTTPConnection("127.0.0.1", broker.admin_port, timeout=PATIENCE_S)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, body


def test_state_tells_where_everything_is(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """/state is one JSON document with the broker, its partitions and segments, its counters and plug-ins."""
    client.produce(topic, b"hello")
    client.wait_for(topic, 15)
    state = broker.state()

    assert set(state) == {
        "broker_id", "host", "port", "admin_port", "pid", "started_ms", "connections", "topics", "missing", "no_room",
        "offline", "counters", "plugins", "principals",
    }  # fmt: skip
    assert (state["port"], state["pid"], state["admin_port"]) == (broker.port, broker.pid, broker.admin_port)
    partition = state["topics"][topic]["partitions"]["0"]
    assert {k: partition[k] for k in ("first_offset", "flushed_offset", "end_offset", "size")} == {
        "first_offset": 0, "flushed_offset": 15, "end_offset": 15, "size": 15,
    }  # fmt: skip
    (segment,) = partition["segments"]
    assert (segment["start"], segment["size"], segment["flushed_size"]) == (0, 15, 15)
    assert segment["mtime_ms"] > 0


def test_metrics_have_their_names_and_are_true(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """/metrics is Prometheus text; appended, fetched and flushed numbers are those of this topic (ux §3.5)."""
    client.produce(topic, b"hello", b"there")
    client.wait_for(topic, 30)
    client.fetch(topic)
    status, body = request(broker, "/metrics")
    samples = {
        (sample.name, sample.labels.get("topic"), sample.labels.get("partition")): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }

    assert status == 200
    assert samples["kafka2011_broker_appended_messages_total", topic, None] == 2
    assert samples["kafka2011_broker_appended_bytes_total", topic, None] == 30
    assert samples["kafka2011_broker_topic_fetched_bytes_total", topic, None] == 30
    assert samples["kafka2011_broker_flushed_offset", topic, "0"] == 30
    assert samples["kafka2011_broker_end_offset", topic, "0"] == 30
    assert samples["kafka2011_broker_segments", topic, "0"] == 1
    assert samples["kafka2011_broker_connections", None, None] >= 1
    assert samples["kafka2011_broker_flush_seconds_count", None, None] >= 1


def test_the_page_about_metrics_names_every_metric(broker: BrokerProcess) -> None:
    """docs/metrics.md lists exactly the metrics a broker has."""
    import re
    from pathlib import Path

    page = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()
    _, body = request(broker, "/metrics")
    found = {family.name for family in text_string_to_metric_families(body.decode())}
    listed = {name.removesuffix("_total") for name in re.findall(r"`(kafka2011_broker_\w+)`", page)}

    assert listed == found


def read_events(broker: BrokerProcess, until_event: str, topic: str, **headers: str) -> list[dict[str, object]]:
    """Follow /events until the event about ``topic`` comes."""
    assert broker.admin_port is not None
    connection = http.client.HTTPConnection("127.0.0.1", broker.admin_port, timeout=PATIENCE_S)
    connection.request("GET", "/events", headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    assert reply.getheader("content-type") == "text/event-stream"
    found = []
    while True:
        line = reply.readline().decode()
        assert line, "the stream ended"
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
            if found[-1]["event"] == until_event and found[-1].get("topic") == topic:
                connection.close()
                return found


def test_events_are_replayed_from_the_last_one_seen(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    """/events sends what happened, in order, and what a reader missed when it comes back with Last-Event-ID."""
    client.produce(topic, b"hello")
    first = read_events(broker, "topic_created", topic)
    client.produce(f"{topic}-later", b"hello")
    later = read_events(broker, "topic_created", f"{topic}-later", Last_Event_ID=str(first[-1]["n"]))

    numbers = [int(str(event["n"])) for event in first]
    assert numbers == sorted(numbers)
    assert int(str(later[0]["n"])) == numbers[-1] + 1
    assert topic not in {event.get("topic") for event in later if event["event"] == "topic_created"}


@pytest.mark.parametrize(
    ("path", "method", "host", "status"),
    [
        ("/healthz", "GET", "127.0.0.1", 200),
        ("/healthz", "GET", "localhost:1234", 200),
        ("/healthz", "GET", "[::1]:80", 200),
        ("/state", "GET", "evil.example", 403),
        ("/state", "GET", "127.0.0.1.evil.example", 403),
        ("/state", "POST", "127.0.0.1", 405),
        ("/state", "DELETE", "127.0.0.1", 405),
        ("/", "GET", "127.0.0.1", 404),
        ("/state/../../etc/passwd", "GET", "127.0.0.1", 404),
    ],
)
def test_only_reading_and_only_from_here(broker: BrokerProcess, path: str, method: str, host: str, status: int) -> None:
    """GET only, known paths only, and only under a loopback name: a foreign page cannot read it (W1, W2, W4)."""
    assert request(broker, path, method=method, Host=host)[0] == status


@pytest.mark.parametrize("since", ["9" * 5000, "%ff", "%C2%B2"])
def test_odd_numbers_are_400_and_one_line(broker: BrokerProcess, since: str) -> None:
    """Issue 19 B10: /events?since= with 5,000 digits or bad UTF-8 is an answer of one line, and no traceback."""
    status, body = request(broker, f"/events?once=1&since={since}")

    assert (status, body.count(b"\n")) == (400, 1)
    assert "Traceback" not in broker.output


def test_a_large_body_costs_nothing(broker: BrokerProcess) -> None:
    """Issue 20 C1: 16 MiB announced to the admin port are refused before they are read."""
    assert broker.admin_port is not None
    with socket.create_connection(("127.0.0.1", broker.admin_port), PATIENCE_S) as line:
        kind = "application/x-www-form-urlencoded"
        head = f"POST /state HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 16777216\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def test_streams_of_events_give_way(broker: BrokerProcess) -> None:
    """Issue 20 C4: a hundred readers of /events cannot keep the administrator out."""
    assert broker.admin_port is not None
    with ExitStack() as lines:
        for n in range(100):
            source = (f"127.0.0.{2 + n % 4}", 0)
            line = socket.create_connection(("127.0.0.1", broker.admin_port), PATIENCE_S, source_address=source)
            lines.enter_context(line)
            line.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert request(broker, "/healthz")[0] == 200
