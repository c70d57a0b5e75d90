"""The test kit fails on errors that a broker left unhandled."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess, UnhandledErrors, unhandled_errors

PLANTED = """
from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail


def at_once():
    fail(ZeroDivisionError("planted, seen at once"))


def by_the_collector():
    lost = Deferred()
    lost.itself = lost
    lost.errback(ZeroDivisionError("planted, seen by the garbage collector"))


def in_a_timer():
    raise ZeroDivisionError("planted, in a timer")


reactor.callWhenRunning({how})
"""


@pytest.mark.parametrize("how", ["at_once", "by_the_collector", "in_a_timer"])
def test_an_unhandled_error_fails_the_test(tmp_path: Path, how: str) -> None:
    """Issue 19 A2: "make the test kit fail on it": the control, an error planted in a real broker's reactor."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED.replace("{how}", how))
    broker = BrokerProcess(tmp_path / "data", environ={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(UnhandledErrors, match="planted"), broker:
        assert broker.state()["connections"] == 0

    with BrokerProcess(tmp_path / "data", environ={"PYTHONPATH": str(tmp_path)}, expected_errors=["planted"]):
        pass


def test_a_failing_test_shows_its_own_failure(tmp_path: Path) -> None:
    """The kit's verdict never hides the test's own."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED.replace("{how}", "at_once"))
    with pytest.raises(KeyError), BrokerProcess(environ={"PYTHONPATH": str(tmp_path)}):
        raise KeyError("the test's own")


def test_what_counts_as_unhandled() -> None:
    """Entries of the log are judged one by one; ordinary lines, and what is expected, are left out."""
    output = (
        "2026-11-18 12:00:00,000 INFO broker_started broker_id=0\n"
        "2026-11-18 12:00:01,000 CRITICAL Unhandled error in Deferred:\n"
        "Traceback (most recent call last):\n  KeyError\n"
        '2026-11-18 12:00:02,000 ERROR handler_failed peer=127.0.0.1 error="ValueError()"\n'
        "2026-11-18 12:00:03,000 INFO broker_stopped clean=true\n"
    )

    assert len(unhandled_errors(output)) == 2
    assert [entry[:10] for entry in unhandled_errors(output, ["KeyError"])] == ["2026-11-18"]
    assert unhandled_errors(output, ["KeyError", "ValueError"]) == []
    assert unhandled_errors("listening on 127.0.0.1:9092\n") == []
