"""What a producer tells its journal. Sending itself only counts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Entry, Event, Journal

_MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnreachable(Event):
    """A broker did not take what was sent; the producer tries again, or elsewhere."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"

    broker: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesDropped(Event):
    """Messages the producer gave up, or cannot know the fate of."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "§5"

    topic: str
    n_messages: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIgnored(Event):
    """A message was sent with a key to a plain broker list, which does not know the partitions: the broker picks."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackFailed(Event):
    """The application's own ``on_drop`` raised; the producer goes on."""

    level: ClassVar[int] = logging.ERROR

    error: str


def warn_by_log(journal: Journal) -> None:
    """Log the first warning of each kind and reason, for a program that gave the producer neither handler nor journal.

    Python shows warnings of ``logging`` on stderr unless the program says otherwise. How many messages each reason
    cost is in ``Producer.counters``, and ``close()`` raises it: saying it for every batch would bury the first line.
    """
    logger = logging.getLogger("kafka2011.producer")
    told: set[tuple[str, str]] = set()

    def warn(entry: Entry) -> None:
        event = entry.event
        if isinstance(event, BrokerUnreachable):
            kind, text = (event.name, event.broker), f"{event.broker}: {event.error} Trying again"
        elif isinstance(event, MessagesDropped):
            kind, text = (event.name, event.reason), f"dropped {event.n_messages} of {event.topic!r}: {event.reason}"
        elif isinstance(event, KeyIgnored):
            kind = (event.name, event.topic)
            text = (
                f"the keys of {event.topic!r} have no effect: a plain broker list does not know the partitions. Use "
                "Producer(zookeeper=...) or StaticRouter(brokers, partitions=...)"
            )
        else:
            return
        if kind not in told and len(told) < _MOST_WARNINGS:
            told.add(kind)
            logger.warning("%s (said once; numbers are in Producer.counters)", text)

    journal.subscribe(warn)
