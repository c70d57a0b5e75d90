"""What a load tells while it runs. Paper: §4."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlanned(Event):
    section: ClassVar[str] = "4"
    load: str
    hash: str
    topics: int
    bytes: int
    splits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerChosen(Event):
    """What runs the tasks, and why."""

    section: ClassVar[str] = "4"
    load: str
    master: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress(Event):
    """Emitted at most once a second."""

    level: ClassVar[int] = logging.DEBUG
    section: ClassVar[str] = "4"
    load: str
    splits_done: int
    splits: int
    bytes_done: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(Event):
    """A task failed and is run again, or the load ends."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "4"
    load: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDied(Event):
    """A worker died of a split, which is now read in halves until the message is found."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "4"
    load: str
    topic: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitsRefused(Event):
    """Splits did not meet; the topic is read again with sure cuts."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "4"
    load: str
    topic: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPublished(Event):
    section: ClassVar[str] = "4"
    load: str
    topic: str
    version: int
    rows: int
    dead: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFailed(Event):
    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "4"
    load: str
    topic: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound(Event):
    section: ClassVar[str] = "3.1"
    topic: str
    to_version: int
    version: int
    files_removed: int
    files_restored: int
