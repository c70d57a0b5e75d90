"""Find messages for the page: from a place on, or those that contain a text.

There is no index (§3.1): what is looked for by content is found by reading, within a bound, and the answer says how
far it came.

Paper: §3.1, "To compute the id of the next message, we have to add the length of the current message to its id".
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from classroom.observatory import modern_messages
from classroom.observatory.frames import Film, is_modern
from classroom.observatory.messages import Decoder, anatomy, meaning
from classroom.observatory.modern_messages import ModernPartition, records_of, taken_apart
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition
from kafka2011.wire import EARLIEST, LATEST, decode_set, valid_bytes
from since2011.wire.records import Record

SHOWN = 50
SEARCH_S = 4.0
"""Seconds one search may take, over all partitions."""
_CHUNK = 1 << 20


class BadQuestion(Kafka2011Error):
    """The page asked for something that is not there."""


class MessageReader:
    """Answer the Browse pane straight from the brokers that the newest frame names. Thread: any."""

    def __init__(self, film: Film, decode: Decoder, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._film, self._decode, self._clock = film, decode, clock

    def answer(self, question: dict[str, str]) -> dict[str, Any]:
        """``topic``, ``partition`` (empty: all), ``from`` and ``contains`` → messages, each with its partition."""
        topic, start = question.get("topic", ""), question.get("from", "begin")
        wanted, places = question.get("contains", ""), self._places(topic, question.get("partition", ""))
        if places and is_modern(self._log(topic, places[0])):
            return self._modern(topic, places, start, wanted)
        deadline = self._clock.monotonic() + SEARCH_S
        messages: list[dict[str, Any]] = []
        searched, complete, begin, next_from = 0, True, None, None
        for place in places:
            most = (SHOWN - len(messages)) if wanted else max(SHOWN // len(places), 1)
            with self._connect(place) as connection:
                offset = _find(connection, topic, place.partition, start)
                begin = offset if begin is None else min(begin, offset)
                looking = _entries_from(connection, topic, place.partition, offset)
                found = 0
                for at, entry in looking:
                    if found >= most or (wanted and self._clock.monotonic() > deadline):
                        complete, next_from = False, at
                        break
                    searched += 1
                    if not wanted or self._contains(entry, wanted):
                        found += 1
                        messages.append({"partition": str(place), **anatomy(at, entry, self._decode)})
        return {
            "from": begin,
            "messages": messages,
            "searched": searched,
            "complete": complete,
            "next": next_from if len(places) == 1 else None,
        }

    def _modern(self, topic: str, places: list[BrokerPartition], start: str, wanted: str) -> dict[str, Any]:
        """The same for a topic of today: batches instead of message sets, an index instead of addition."""
        deadline = self._clock.monotonic() + SEARCH_S
        messages: list[dict[str, Any]] = []
        searched, complete, begin, next_from = 0, True, None, None
        for place in places:
            partition = self.modern_partition(topic, place)
            most = (SHOWN - len(messages)) if wanted else max(SHOWN // len(places), 1)
            offset = _modern_find(partition, start)
            begin, found = offset if begin is None else min(begin, offset), 0
            while complete and (batches := partition.batches(offset)):
                for header, batch in batches:
                    for record in records_of(header, batch):
                        if record.offset < offset:
                            continue
                        if found >= most or (wanted and self._clock.monotonic() > deadline):
                            complete, next_from = False, record.offset
                            break
                        searched += 1
                        if not wanted or _record_contains(record, wanted, self._decode):
                            found += 1
                            shown = taken_apart(header, batch, record, self._decode)
                            messages.append({"partition": str(place), **shown})
                    if not complete:
                        break
                offset = batches[-1][0].next_offset
            if len(places) > 1 and not wanted:
                complete = True
        return {
            "from": begin,
            "messages": messages,
            "searched": searched,
            "complete": complete,
            "next": next_from if len(places) == 1 else None,
        }

    def modern_partition(self, topic: str, place: BrokerPartition) -> ModernPartition:
        """Where a partition of today is asked."""
        broker = (self._film.at() or {"brokers": {}})["brokers"].get(str(place.broker_id))
        if broker is None or not broker["alive"] or not broker.get("modern"):
            raise BadQuestion(f"broker {place.broker_id} is not there, or has no modern port")
        host, port = broker["modern"]
        return ModernPartition(host, port, topic, place.partition)

    def _log(self, topic: str, place: BrokerPartition) -> dict[str, Any]:
        log: dict[str, Any] = (self._film.at() or {"topics": {}})["topics"].get(topic, {}).get(str(place), {})
        return log

    def _places(self, topic: str, partition: str) -> list[BrokerPartition]:
        try:
            if partition:
                return [BrokerPartition.parse(partition)]
            frame = self._film.at() or {"topics": {}, "brokers": {}}
            here = [BrokerPartition.parse(name) for name in frame["topics"].get(topic, {})]
        except ValueError as error:
            raise BadQuestion(str(error)) from error
        found = sorted(place for place in here if frame["brokers"][str(place.broker_id)]["alive"])
        if not found:
            raise BadQuestion(f"no partition of {topic!r} can be read now")
        return found

    def _connect(self, place: BrokerPartition) -> BrokerConnection:
        broker = (self._film.at() or {"brokers": {}})["brokers"].get(str(place.broker_id))
        if broker is None or not broker["alive"]:
            raise BadQuestion(f"broker {place.broker_id} is not registered; its messages wait until it is back")
        return BrokerConnection(broker["host"], broker["port"], timeout_s=5)

    def _contains(self, entry: bytes, wanted: str) -> bool:
        """True if a payload of this entry, compressed or not, holds the text, as bytes or as it is shown."""
        with suppress(Kafka2011Error):  # a damaged entry is shown as such where it lies; a search passes it by
            return any(
                wanted.encode() in message.payload or wanted in meaning(message.payload, self._decode)
                for message in decode_set(entry)
            )
        return False


def _record_contains(record: Record, wanted: str, decode: Decoder) -> bool:
    """True if key, value or a header holds the text."""
    parts = [record.key, record.value, *(held for _, held in record.headers)]
    return any(wanted.encode() in part for part in parts if part) or wanted in meaning(record.value or b"", decode)


def _modern_find(partition: ModernPartition, start: str) -> int:
    first, last = partition.offset_at(modern_messages.EARLIEST), partition.offset_at(modern_messages.LATEST)
    if start in ("", "begin"):
        return first
    if start == "end":
        return last
    if start.startswith("-") and start[1:].isdigit():
        return max(first, last - min(int(start[1:]), SHOWN))
    if start.startswith("@"):
        found = partition.offset_at(_moment(start))
        return last if found < 0 else found
    if start.lstrip("~").isdigit():
        return min(max(int(start.lstrip("~")), first), last)
    raise BadQuestion(f"{start!r} is not begin, end, an offset, -N or @time")


def _moment(start: str) -> int:
    try:
        return int(datetime.fromisoformat(start[1:]).timestamp() * 1000)
    except ValueError as error:
        raise BadQuestion(f"{start!r} is not a time; write @2026-01-31T12:00") from error


def _entries_from(
    connection: BrokerConnection, topic: str, partition: int, offset: int
) -> Iterator[tuple[int, bytes]]:
    """Every entry from ``offset`` to the flushed end."""
    while entries := _entries(connection.fetch(topic, partition, offset, _CHUNK), offset):
        yield from entries
        offset = entries[-1][0] + len(entries[-1][1])


def _entries(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    found, place, end = [], 0, valid_bytes(data)
    while place < end:
        size = 4 + int(struct.unpack_from(">i", data, place)[0])
        found.append((offset + place, data[place : place + size]))
        place += size
    return found


def _find(connection: BrokerConnection, topic: str, partition: int, start: str) -> int:
    first = connection.offsets(topic, partition, EARLIEST)[0]
    last = connection.offsets(topic, partition, LATEST)[0]
    if start in ("", "begin"):
        return first
    if start == "end":
        return last
    if start.startswith("-") and start[1:].isdigit():
        return _last_messages(connection, topic, partition, first, last, min(int(start[1:]), SHOWN))
    if start.startswith("@"):
        found = connection.offsets(topic, partition, _moment(start))
        return found[0] if found else first
    if start.startswith("~") and start[1:].isdigit():
        return _holding(connection, topic, partition, first, last, int(start[1:]))
    if start.isdigit():
        return int(start)
    raise BadQuestion(f"{start!r} is not begin, end, an offset, ~offset, -N or @time")


def _walk(connection: BrokerConnection, topic: str, partition: int, start: int, last: int) -> Iterator[int]:
    """The offsets of the messages from ``start`` on: each is the one before plus its length."""
    place = start
    while place < last:
        entries = _entries(connection.fetch(topic, partition, place, _CHUNK), place)
        if not entries:
            return
        yield from (offset for offset, _ in entries)
        place = entries[-1][0] + len(entries[-1][1])


def _holding(connection: BrokerConnection, topic: str, partition: int, first: int, last: int, wanted: int) -> int:
    """The message that byte ``wanted`` of the log belongs to: walk there from the start of its file."""
    starts = [start for start in connection.offsets(topic, partition, LATEST, 1000) if start <= wanted]
    found = max(starts, default=first)
    for offset in _walk(connection, topic, partition, found, last):
        if offset > wanted:
            break
        found = offset
    return found


def _last_messages(connection: BrokerConnection, topic: str, partition: int, first: int, last: int, wanted: int) -> int:
    """Where the last ``wanted`` messages begin: walk from a segment start, since offsets cannot be counted back."""
    starts = [start for start in connection.offsets(topic, partition, LATEST, 1000) if start < last] or [first]
    for start in starts:
        offsets = deque(_walk(connection, topic, partition, start, last), maxlen=wanted)
        if len(offsets) >= wanted or start == starts[-1]:
            return offsets[0] if offsets else start
    return first
