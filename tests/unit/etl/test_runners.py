"""What a runner makes of deaths: of a Python worker, and of the JVM itself (issues 20 A1, 21-12, 21-17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hadoop_etl.decode import Format
from hadoop_etl.errors import LoadError
from hadoop_etl.events import RunnerChosen
from hadoop_etl.halving import Halving
from hadoop_etl.runner_choice import SPARK_FROM, ChosenRunner
from hadoop_etl.runners import SparkRunner
from hadoop_etl.split import Split
from hadoop_etl.work import LostSplit, Result, SplitResult, Work
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import encode_set


def work(start: int, end: int) -> Work:
    place = (BrokerPartition(0, 0), BrokerAddress(0, "127.0.0.1", 9092))
    return Work("load", "t", *place, Split(start, end, end), Format(), "/w", "/d", False, "2011-06-12", 0, 1000)


class FakeSpark:
    """A context whose jobs end as told; ``is_gone``: nobody answers any more."""

    def __init__(self, end: Callable[[Sequence[Work]], list[Result]], is_gone: bool = False) -> None:
        self._end, self._is_gone = end, is_gone
        self.jobs: list[Sequence[Work]] = []

    def parallelize(self, works: Sequence[Work], slices: int) -> FakeSpark:
        self.jobs.append(works)
        return self

    def map(self, task: object) -> FakeSpark:
        return self

    def collect(self) -> list[Result]:
        return self._end(self.jobs[-1])

    def statusTracker(self) -> FakeSpark:
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return self.getActiveStageIds()

    def getActiveStageIds(self) -> list[int]:
        if self._is_gone:
            raise ConnectionRefusedError(111, "Connection refused")
        return []

    def setJobGroup(self, *_: object, **__: object) -> None:
        pass


def run(spark: Any, works: Sequence[Work]) -> list[Result]:
    return SparkRunner(spark).run(works, lambda done, failed: None)


def test_one_split_that_kills_spark_s_workers_is_found() -> None:
    """Spark gives the whole job up; halves of it end as they should, but for the one split (issue 20 A1)."""

    def end(works: Sequence[Work]) -> list[Result]:
        if any(one.split.start == 30 for one in works):
            raise RuntimeError("Job aborted: Python worker exited unexpectedly (crashed)")
        return [SplitResult(one, one.split.end) for one in works]

    found = run(FakeSpark(end), [work(start, start + 10) for start in range(0, 80, 10)])
    (lost,) = [one for one in found if isinstance(one, LostSplit)]
    assert (lost.work.split.start, lost.died, len(found)) == (30, True, 8)


def test_the_death_of_the_jvm_is_called_that() -> None:
    """Not "connection refused", as if a broker were away (issue 21 point 12)."""

    def end(works: Sequence[Work]) -> list[Result]:
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(LoadError, match="its Java process ended"):
        run(FakeSpark(end, is_gone=True), [work(0, 10)])


def test_halves_are_cut_between_messages_and_kept() -> None:
    """The guilty entry alone is judged; everything else is loaded once, in order, by pieces that meet."""
    entries = [encode_set([b"x" * size]) for size in (5, 50, 7, 9, 100)]
    data = b"".join(entries)
    guilty = len(entries[0]) + len(entries[1])
    tried: list[Work] = []

    def run_one(works: Sequence[Work]) -> list[Result]:
        (one,) = works
        tried.append(one)
        if one.split.start <= guilty < one.split.end and not one.guilty:
            return [LostSplit(one, "it died", died=True)]
        return [SplitResult(one, one.split.end, rows=1, dead=len(one.guilty))]

    found = Halving(run_one, lambda offset, size: data[offset : offset + size]).rescue(
        LostSplit(work(0, len(data)), "it died", died=True)
    )
    assert isinstance(found, SplitResult)
    assert (found.end, found.dead) == (len(data), 1)
    judged = [one for one in tried if one.guilty]
    assert [(one.split.start, one.split.end) for one in judged] == [(guilty, guilty + len(entries[2]))]
    assert len({one.piece for one in tried}) == len(tried), "each piece writes files of its own"


@pytest.mark.parametrize(
    ("master", "size", "settings", "chosen"),
    [
        (None, 1000, {}, "inline"),
        (None, SPARK_FROM, {}, "local[*]"),
        (None, 1000, {"spark.x": "1"}, "local[*]"),
        ("spark://host:7077", 1000, {}, "spark://host:7077"),
    ],
)
def test_the_runner_is_chosen_by_size_and_says_why(
    monkeypatch: pytest.MonkeyPatch, master: str | None, size: int, settings: dict[str, str], chosen: str
) -> None:
    """Without --master a small load needs no Spark (issue 21 point 17); whatever is said is done."""
    journal = Journal()
    said: list[RunnerChosen] = []
    journal.subscribe(lambda entry: said.append(entry.event) if isinstance(entry.event, RunnerChosen) else None)

    class Nothing:
        def run(self, works: Sequence[Work], on_progress: object) -> list[Result]:
            return []

    monkeypatch.setattr(ChosenRunner, "_inline", lambda self: Nothing())
    monkeypatch.setattr(ChosenRunner, "_spark", lambda self, master: Nothing())
    ChosenRunner(master, journal, settings=settings).run([work(0, size)], lambda done, failed: None)
    assert [event.master for event in said] == [chosen]
    assert said[0].why
