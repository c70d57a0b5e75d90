"""What a person sees while a load runs: lines on stderr, each with the load's name."""

from __future__ import annotations

from hadoop_etl.events import (
    LoadPlanned,
    LoadProgress,
    LoadPublished,
    RunnerChosen,
    SplitsRefused,
    TaskFailed,
    TopicFailed,
    WorkerDied,
)
from kafka2011.cli.output import note
from kafka2011.events import Entry

_MB = 1e6


class ProgressLines:
    """A journal subscriber that prints. Thread: any, one at a time."""

    def __init__(self, every_s: float = 5.0) -> None:
        self._every_s = every_s
        self._last_s = 0.0

    def __call__(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, LoadProgress):
            if event.splits_done == event.splits or event.seconds - self._last_s >= self._every_s:
                self._last_s = event.seconds
                note(f"{event.load} {self._progress(event)}")
        elif isinstance(event, LoadPlanned):
            size = event.bytes / _MB
            note(f"{event.load} planned {event.topics} topics, {event.splits} splits, {size:.1f} MB; hash {event.hash}")
        elif isinstance(event, RunnerChosen):
            note(f"{event.load} runs with --master {event.master}: {event.why}")
        elif isinstance(event, LoadPublished):
            note(f"{event.load} published {event.topic} version {event.version}: {event.rows} rows, {event.dead} dead")
        elif isinstance(event, (TaskFailed, TopicFailed, SplitsRefused, WorkerDied)):
            note(f"{event.load} {event.name.replace('_', ' ')}: {event.reason}")

    def _progress(self, event: LoadProgress) -> str:
        rate = event.bytes_done / event.seconds if event.seconds else 0.0
        left = (event.bytes - event.bytes_done) / rate if rate else 0.0
        return f"{event.splits_done}/{event.splits} splits, {rate / _MB:.1f} MB/s, about {left:.0f} s left"
