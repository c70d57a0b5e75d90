"""Topics on their way to the disk: one write per request, in a thread, whoever has hung up meanwhile (issue 20 C2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import pytest
from twisted.internet.defer import Deferred

from kafka2011.broker.creations import MOST_ADDRESSES, CreationRate
from kafka2011.failpoints import activate
from kafka2011.log import LogSettings, LogStore
from since2011.topics import topic_creation
from since2011.topics.topic_counts import TopicCounts
from since2011.topics.topic_creation import Errors, TopicCreation
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal


class Desk:
    """A store, and threads that work when they are told to."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, **settings: int) -> None:
        self.store = LogStore(directory / "data", LogSettings(**settings))  # type: ignore[arg-type]
        self.store.open()
        self.announced: list[str] = []
        self.store.on_topic_created(lambda topic, _n: self.announced.append(topic))
        self.file = directory / "topics.json"
        self.counts = TopicCounts(self.file, self.store)
        rate = CreationRate(0, 1, lambda: 0.0)
        broker = SimpleNamespace(store=self.store, creations=rate, rate_limit=Mock())
        self.creation = TopicCreation(broker, self.counts)  # type: ignore[arg-type]
        self._work: list[Callable[[], None]] = []
        monkeypatch.setattr(topic_creation, "deferToThread", self._defer)

    def _defer(self, call: Callable[..., object], *values: object) -> Deferred[object]:
        done: Deferred[object] = Deferred()
        self._work.append(lambda: done.callback(call(*values)))
        return done

    def work(self) -> None:
        for each in self._work:
            each()
        self._work.clear()

    def create(self, **wanted: int | None) -> Errors:
        found: list[Errors] = []
        self.creation.create(wanted, "here").addCallback(found.append)
        self.work()
        return found[0]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch, max_topics=10, max_partitions=50)


def test_one_write_for_a_whole_request(desk: Desk) -> None:
    """However many topics it names."""
    with patch.object(TopicCounts, "_write", autospec=True, side_effect=TopicCounts._write) as write:
        assert desk.create(a=2, b=3, c=None) == {}
    assert write.call_count == 1
    assert json.loads(desk.file.read_text()) == {"a": 2, "b": 3}
    assert desk.announced == ["a", "b", "c"]
    assert [desk.store.partition_count(topic) for topic in "abc"] == [2, 3, 1]


def test_the_limit_is_asked_first(desk: Desk) -> None:
    """What does not fit is refused before a byte is written, also what only would not fit with what is under way."""
    waiting = desk.creation.create({"a": 40}, "here")
    with patch.object(TopicCounts, "_write", side_effect=AssertionError("written")):
        (error,) = desk.creation.create({"b": 11}, "here").result.values()  # type: ignore[union-attr]
    assert refusal(error)[0] is ErrorCode.POLICY_VIOLATION
    desk.work()
    assert waiting.result == {}  # type: ignore[comparison-overlap]
    assert json.loads(desk.file.read_text()) == {"a": 40}


def test_two_who_ask_for_the_same(desk: Desk) -> None:
    """The second is told to ask again; the topic is made and announced once."""
    first = desk.creation.create({"a": None}, "here")
    assert desk.creation.is_under_way("a")
    (error,) = desk.creation.create({"a": None}, "there").result.values()  # type: ignore[union-attr]
    assert refusal(error)[0] is ErrorCode.LEADER_NOT_AVAILABLE
    desk.work()
    assert first.result == {}  # type: ignore[comparison-overlap]
    assert desk.announced == ["a"]
    assert not desk.creation.is_under_way("a")


def test_who_hangs_up_leaves_nothing_half_done(desk: Desk) -> None:
    """The topic is announced all the same, and nothing stays under way."""
    asked = desk.creation.create({"a": None}, "here")
    asked.addErrback(lambda _: None)
    asked.cancel()
    desk.work()
    assert desk.announced == ["a"]
    assert not desk.creation.is_under_way("a")


def test_a_full_disk_leaves_nothing(desk: Desk) -> None:
    """Neither the number of partitions nor the directory; it can be created later."""
    with activate("log.roll.before_create", "raise:ENOSPC"):
        (error,) = desk.create(a=7).values()
    assert refusal(error)[0] is ErrorCode.KAFKA_STORAGE_ERROR
    assert json.loads(desk.file.read_text()) == {}
    assert (desk.store.topics(), desk.announced) == ({}, [])
    assert not (desk.store.directory / "a-0").exists()
    assert desk.create(a=3) == {}
    assert desk.store.partition_count("a") == 3


def test_the_purse_of_an_address_fills_up_slowly() -> None:
    """Its burst at once, then so many a second, never more than the burst; others have their own; memory is bounded."""
    now = 0.0
    rate = CreationRate(2, 5, lambda: now)
    assert [rate.take("a") for _ in range(7)] == [True] * 5 + [False] * 2
    assert rate.take("b")
    now = 1.0
    assert [rate.take("a") for _ in range(3)] == [True, True, False]
    now = 100.0
    assert [rate.take("a") for _ in range(6)] == [True] * 5 + [False]
    for n in range(MOST_ADDRESSES + 10):
        rate.take(f"{n}")
    assert len(rate._purses) == MOST_ADDRESSES
