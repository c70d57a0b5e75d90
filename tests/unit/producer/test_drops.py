"""A producer that drops messages says so, whoever forgot to ask (issue 22 A1)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka2011.errors import NotDelivered
from kafka2011.events import Journal
from kafka2011.producer import Producer
from tests.unit.producer.puppet import PuppetBroker
from tests.unit.producer.test_producer import Drops, nobody_listens


def test_close_raises_what_was_not_delivered(caplog: pytest.LogCaptureFixture) -> None:
    """Without a handler, close() raises with number and reasons, and the first loss was logged (issue 22 A1)."""
    producer = Producer(nobody_listens(), retries=0, connect_timeout_s=0.01)
    producer.send("clicks", [b"a", b"b"])

    with pytest.raises(NotDelivered, match=r"not delivered: 2 .*Connection refused") as raised:
        producer.close()

    assert raised.value.n_messages == 2
    assert sum(raised.value.reasons.values()) == 2
    assert "dropped 2 of 'clicks'" in caplog.text


def test_a_loss_is_logged_once_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand lost batches are one line, not a thousand: the first one must stay in sight (issue 22 A1)."""
    producer = Producer(nobody_listens(), retries=0, connect_timeout_s=0.001, batch_size=1)
    for _ in range(20):
        producer.send("clicks", b"x")
        producer.flush()

    assert caplog.text.count("dropped ") == 1
    with pytest.raises(NotDelivered, match="not delivered: 20 "):
        producer.close()


def test_a_handler_is_told_instead(caplog: pytest.LogCaptureFixture) -> None:
    """Who gave an on_drop handler decides itself: no log line, no exception (issue 22 A1)."""
    drops = Drops()
    with Producer(nobody_listens(), retries=0, connect_timeout_s=0.01, on_drop=drops) as producer:
        producer.send("clicks", b"x")

    assert [(topic, n) for topic, n, _ in drops] == [("clicks", 1)]
    assert caplog.text == ""


def test_an_error_of_the_program_is_not_hidden() -> None:
    """A with block left by the program's own error keeps that error; the loss was logged (issue 22 A1)."""
    with pytest.raises(KeyError, match="mine"), Producer(nobody_listens(), retries=0, connect_timeout_s=0.01) as p:
        p.send("clicks", b"x")
        raise KeyError("mine")


def test_what_was_turned_away_at_the_door_is_no_surprise(broker: PuppetBroker) -> None:
    """on_full="drop" was the program's own word: close() counts those and does not raise (issue 22 A1)."""
    producer = Producer(broker.address, queue_size=2, linger_ms=3_600_000, on_full="drop", journal=Journal())
    producer.send("clicks", [b"a", b"b"])
    producer.send("clicks", [b"c"] * 3)
    producer.close()

    assert producer.counters.dropped == 3


def test_a_program_that_forgets_to_close_is_told() -> None:
    """Messages still queued when the program ends are named on stderr (issue 22 A1)."""
    program = (
        f"from kafka2011 import Producer\nProducer('{nobody_listens()}', linger_ms=3_600_000).send('clicks', b'x')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert "without Producer.close(): 1 messages were still queued" in ended.stderr


def test_a_key_without_effect_is_said_once(broker: PuppetBroker, caplog: pytest.LogCaptureFixture) -> None:
    """A key sent through a plain broker list is ignored, as in 0.7, but not without a word (issue 22 A6)."""
    with Producer(broker.address) as producer:
        for _ in range(3):
            producer.send("clicks", b"x", key="member42")

    assert caplog.text.count("the keys of 'clicks' have no effect") == 1
