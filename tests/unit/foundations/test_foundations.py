"""Types, clock, events, failpoints: what everything else stands on."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest

from kafka2011.clock import SYSTEM_CLOCK, ManualClock
from kafka2011.events import Entry, Event, Journal, log_lines
from kafka2011.failpoints import activate, fail_point, load
from kafka2011.types import BrokerPartition, is_legal_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentThing(Event):
    """An event for these tests."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    raw: bytes = b"\x01"


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 200, "__consumer_offsets", "x-0"])
def test_legal_names(name: str) -> None:
    """Letters, digits, dot, dash and underscore up to 200 characters make a topic (reliability T1)."""
    assert is_legal_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../../x", "a/b", "a\0b", "a\nINFO fake", "…", "x" * 201, "a%2fb", "<img>", "{{7}}", "$(id)"],
)
def test_illegal_names(name: str) -> None:
    """A name that could leave the directory, forge a log line or a page is no topic (reliability T1, T2)."""
    assert not is_legal_name(name)


def test_partitions_sort_by_number_and_read_back() -> None:
    """Broker partitions sort numerically and are written as 0.7 writes them (docs/zookeeper.md)."""
    parsed = [BrokerPartition.parse(text) for text in ("10-0", "2-10", "2-9")]

    assert [str(p) for p in sorted(parsed)] == ["2-9", "2-10", "10-0"]
    for wrong in ("1", "a-0", "1-", "-1-0", "1-0 "):
        with pytest.raises(ValueError, match="is not"):
            BrokerPartition.parse(wrong)


def test_a_manual_clock_moves_only_when_told() -> None:
    """Time is an argument: a ManualClock stands still, sleeping moves it."""
    clock = ManualClock(wall_ms=1000)
    clock.sleep(1.5)
    clock.advance(0.5)

    assert (clock.monotonic(), clock.wall_ms()) == (2.0, 3000)
    assert SYSTEM_CLOCK.wall_ms() > 1_600_000_000_000
    assert SYSTEM_CLOCK.monotonic() <= SYSTEM_CLOCK.monotonic()


def test_a_journal_numbers_keeps_and_hands_on() -> None:
    """Events are numbered without gaps, the newest are kept, and a reader can catch up by number."""
    journal = Journal(clock=ManualClock(), keep=3)
    seen: list[Entry] = []
    end = journal.subscribe(seen.append)
    for k in range(5):
        journal.emit(SegmentThing(topic=f"t{k}"))
    end()
    journal.emit(SegmentThing(topic="unseen"))

    assert [entry.number for entry in seen] == [1, 2, 3, 4, 5]
    assert [entry.number for entry in journal.since(0)] == [4, 5, 6]
    assert [entry.number for entry in journal.since(5)] == [6]
    line = json.loads(seen[0].as_json())
    assert line == {"n": 1, "t": 1_300_000_000_000, "event": "segment_thing", "section": "", "topic": "t0", "raw": "01"}


def test_a_broken_subscriber_never_stops_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A subscriber that raises is taken off the list; the emitter and the others go on."""
    journal = Journal()
    seen: list[Entry] = []

    def broken(entry: Entry) -> None:
        raise RuntimeError("boom")

    journal.subscribe(broken)
    journal.subscribe(seen.append)
    journal.emit(SegmentThing(topic="a"))
    journal.emit(SegmentThing(topic="b"))

    assert len(seen) == 2
    assert len([record for record in caplog.records if "removed" in record.message]) == 1


def test_a_log_line_cannot_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    """An event is one line whatever its fields hold (reliability T1: a name with a line break)."""
    journal = Journal()
    log_lines(journal)
    journal.emit(SegmentThing(topic="a\nINFO fake=1"))

    (record,) = caplog.records
    assert record.getMessage() == 'segment_thing topic="a\\nINFO fake=1" raw=01'
    assert record.levelno == logging.WARNING


def test_failpoints_strike_where_told() -> None:
    """A failpoint does nothing unless switched on, and then at its n-th hit only."""
    fail_point("test.here")
    with activate("test.here", "raise:EIO@2"):
        fail_point("test.here")
        with pytest.raises(OSError, match=r"failpoint test\.here"):
            fail_point("test.here")
        fail_point("test.here")
    fail_point("test.here")


@pytest.mark.parametrize("text", ["x=boom", "x=raise:ENOTHING", "x=kill@soon"])
def test_a_wrong_failpoint_is_refused(text: str) -> None:
    """A misspelt failpoint action is an error, never a test that silently tests nothing."""
    with pytest.raises(ValueError):
        load(text)


@pytest.mark.parametrize(("action", "code"), [("kill", -9), ("exit", 70)])
def test_failpoints_end_the_process(action: str, code: int) -> None:
    """kill and exit end the process on the spot, chosen by the environment."""
    done = subprocess.run(
        [sys.executable, "-c", "from kafka2011.failpoints import fail_point; fail_point('a.b'); print('alive')"],
        env={"KAFKA2011_FAILPOINTS": f"a.b={action}", "PATH": ""},
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (code, b"")
