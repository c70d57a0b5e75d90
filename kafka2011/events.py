"""State changes, told once and read by all: the log lines, the page, the experiments and the tests.

An event is a small frozen dataclass. Each package declares its own beside the code that emits them
(``class Rolled(Event)``); a Journal numbers, keeps and hands on what is emitted. Work done per request only bumps
counters and never emits: a journal line is a change of state.

Levels: debug = routine, info = state change, warning = the system healed itself, error = a person must look.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from kafka2011.clock import SYSTEM_CLOCK, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events. Subclasses add fields; ``section`` names the paper's paragraph."""

    level: ClassVar[int] = logging.INFO
    section: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The event's name in log lines and JSON: ``SegmentRolled`` -> ``segment_rolled``."""
        text = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() else c for c in text).lstrip("_")

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    return str(value)


@dataclass(frozen=True, slots=True)
class Entry:
    """An event with its place in the journal and its time."""

    number: int
    wall_ms: int
    event: Event

    def as_dict(self) -> dict[str, Any]:
        """Number, time, name, section, fields."""
        return {
            "n": self.number,
            "t": self.wall_ms,
            "event": self.event.name,
            "section": self.event.section,
        } | self.event.as_dict()

    def as_json(self) -> str:
        """The same as one line."""
        return json.dumps(self.as_dict())


Subscriber = Callable[[Entry], None]


class Journal:
    """Keep the last events and hand each to the subscribers. Thread: any.

    A subscriber is called in the emitting thread and must be quick; one that raises is dropped from the
    list, so that a broken page can never stop a broker.
    """

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, keep: int = 10_000) -> None:
        self._clock = clock
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._subscribers: list[Subscriber] = []
        self._lock = threading.Lock()
        self._number = 0

    def emit(self, event: Event) -> None:
        """Number ``event``, keep it, tell everyone."""
        with self._lock:
            self._number += 1
            entry = Entry(self._number, self._clock.wall_ms(), event)
            self._entries.append(entry)
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            try:
                subscriber(entry)
            except Exception:
                logging.getLogger("kafka2011").exception("a journal subscriber failed and was removed")
                self._remove(subscriber)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every entry from now on; return a function that ends it."""
        with self._lock:
            self._subscribers.append(subscriber)
        return lambda: self._remove(subscriber)

    def since(self, number: int = 0) -> list[Entry]:
        """The kept entries after ``number``, oldest first."""
        with self._lock:
            return [entry for entry in self._entries if entry.number > number]

    def _remove(self, subscriber: Subscriber) -> None:
        with self._lock:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)


def log_lines(journal: Journal, logger: logging.Logger | None = None) -> Callable[[], None]:
    """Write every event as one log line: ``segment_rolled topic=clicks partition=0 …``."""
    target = logger or logging.getLogger("kafka2011")

    def write(entry: Entry) -> None:
        if target.isEnabledFor(entry.event.level):
            words = " ".join(f"{k}={_word(v)}" for k, v in entry.event.as_dict().items() if v is not None)
            target.log(entry.event.level, "%s %s", entry.event.name, words)

    return journal.subscribe(write)


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text) if any(c.isspace() or c in '"=' or ord(c) < 32 for c in text) else text
