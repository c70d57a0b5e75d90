"""The producer's side of the audit (§4)."""

from __future__ import annotations

import json

from kafka2011.clock import ManualClock
from kafka2011.producer import Audit, Producer
from kafka2011.wire import decode_set
from tests.unit.producer.puppet import PuppetBroker
from tests.waiting import until


def timestamp_of(payload: bytes) -> int | None:
    return int(payload) if payload.isdigit() else None


def test_messages_are_counted_in_the_window_of_their_own_time() -> None:
    """A window belongs to the event's time; a message without one counts as of now (§4)."""
    audit = Audit(timestamp_of, window_ms=1000, producer="web-1", clock=ManualClock(wall_ms=7_500))
    audit.count("clicks", [b"999", b"1000", b"1999", b"no time"])
    audit.count("views", [b"1000"])
    events = [json.loads(event) for event in audit.take()]

    assert [(e["topic"], e["window_start_ms"], e["count"]) for e in events] == [
        ("clicks", 0, 1),
        ("clicks", 1000, 2),
        ("clicks", 7000, 1),
        ("views", 1000, 1),
    ]
    assert {(e["producer"], e["window_ms"]) for e in events} == {("web-1", 1000)}


def test_counts_are_deltas_with_numbers_that_never_repeat() -> None:
    """A late message makes a new delta; (producer, sequence) stays unique, also over a restart (§4)."""
    clock = ManualClock()
    first = Audit(timestamp_of, producer="web-1", clock=clock)
    sequences = []
    for _ in range(3):
        first.count("clicks", [b"5", b"6"])
        (event,) = map(json.loads, first.take())
        assert event["count"] == 2
        sequences.append(event["sequence"])
    assert first.take() == []
    clock.advance(0.001)
    second = Audit(timestamp_of, producer="web-1", clock=clock)
    second.count("clicks", [b"5"])
    sequences.append(json.loads(second.take()[0])["sequence"])

    assert len(set(sequences)) == 4


def test_the_producer_publishes_the_counts(broker: PuppetBroker) -> None:
    """What was sent and what the audit topic says add up, per topic; the audit does not count itself (§4)."""
    with Producer(broker.address, audit=Audit(timestamp_of, window_ms=60_000)) as producer:
        producer.send("clicks", [b"1", b"2"])
        producer.send("views", b"3")
        producer.flush(60)
        producer.send("clicks", b"4")

    broker.received(4 + 3)
    counted: dict[str, int] = {}
    for request in broker.produced:
        if request.topic == "audit":
            for message in decode_set(request.data):
                event = json.loads(message.payload)
                counted[event["topic"]] = counted.get(event["topic"], 0) + event["count"]
    assert counted == {"clicks": 3, "views": 1}


def test_counts_are_published_once_per_window_without_further_sends(broker: PuppetBroker) -> None:
    """The monitoring event is generated periodically (§4), not only when the application flushes."""
    with Producer(broker.address, audit=Audit(timestamp_of, window_ms=20)) as producer:
        producer.send("clicks", b"1")
        until(lambda: any(r.topic == "audit" for r in broker.produced), "the audit event came by itself")
