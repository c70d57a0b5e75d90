"""Where to begin reading: ``begin``, ``end``, ``-N``, a number, ``@time``.

Paper: §3.1: there is no index from messages to offsets, so the last N messages are found by walking from the
start of a segment, the only message borders a broker can name.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import click

from kafka2011.cli.output import check_topic
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConnectionFailed, InvalidMessageSize, OffsetOutOfRange
from kafka2011.wire import EARLIEST, LATEST, decode_set, valid_bytes

LARGEST_FETCH = 64 << 20
MOST = (1 << 63) - 1
_ALL = 100_000


class Start(NamedTuple):
    """An offset, and how many messages of the entry there (a compressed set) to skip."""

    offset: int
    skip: int = 0


def fetch_whole(connection: BrokerConnection, topic: str, partition: int, offset: int, max_size: int) -> bytes:
    """Fetch at ``offset``; where not even one message fits, fetch more."""
    while True:
        data = connection.fetch(topic, partition, offset, max_size)
        why = "nothing but a piece of one is there"
        try:
            if not data or valid_bytes(data):
                return data
        except InvalidMessageSize as error:
            why = str(error)
        if len(data) < max_size or max_size >= LARGEST_FETCH:
            raise InvalidMessageSize(
                f"no message begins at offset {offset} of {topic}-{partition}: {why}; "
                "begin at one that --format '%o' has shown, or at `begin`"
            )
        max_size *= 2


def find_start(connection: BrokerConnection, topic: str, partition: int, choice: str, max_size: int) -> Start:
    """Turn the user's words into an offset."""
    try:
        return _find(connection, check_topic(topic), partition, choice, max_size)
    except ConnectionFailed as error:
        if error.definite:
            raise
        # A 0.7 broker hangs up when asked for the offsets of a partition that it does not have; a fetch is answered.
        with suppress(OffsetOutOfRange):
            connection.fetch(topic, partition, 0, 0)
        raise


def _find(connection: BrokerConnection, topic: str, partition: int, choice: str, max_size: int) -> Start:
    if choice in ("begin", "beginning", "smallest"):
        return Start(connection.offsets(topic, partition, EARLIEST)[0])
    if choice in ("end", "largest"):
        return Start(connection.offsets(topic, partition, LATEST)[0])
    if choice.startswith("@"):
        found = connection.offsets(topic, partition, parse_time(choice[1:]))
        return Start(found[0] if found else connection.offsets(topic, partition, EARLIEST)[0])
    if choice.removeprefix("-").isdecimal():
        number = int(choice)
        if abs(number) > MOST:
            raise click.UsageError(f"--offset {choice}: an offset has at most {len(str(MOST))} digits")
        return Start(number) if not choice.startswith("-") else _last(connection, topic, partition, -number, max_size)
    raise click.UsageError(f"--offset {choice!r} is none of begin, end, a number, -N, @time")


def parse_time(text: str) -> int:
    """Milliseconds since 1970, from ISO time or from the number itself."""
    if text.isdecimal() and int(text) <= MOST:
        return int(text)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.UsageError(f"@{text} is neither ISO time (@2011-06-12T09:00) nor ms since 1970") from None


def _last(connection: BrokerConnection, topic: str, partition: int, count: int, max_size: int) -> Start:
    """The start of the last ``count`` messages: walk segments from the newest back until there are enough."""
    end, *starts = connection.offsets(topic, partition, LATEST, _ALL)
    if not count or not starts:
        return Start(end)
    found: deque[Start] = deque()
    for start in starts:
        segment: deque[Start] = deque(maxlen=count - len(found))
        offset = start
        while offset < end:
            data = fetch_whole(connection, topic, partition, offset, max_size)
            if not data:
                break
            previous, skip = -1, 0
            for message in decode_set(data, offset):
                skip = skip + 1 if message.offset == previous else 0
                segment.append(Start(message.offset, skip))
                previous = message.offset
            offset += valid_bytes(data)
        found.extendleft(reversed(segment))
        end = start
        if len(found) >= count:
            break
    return found[0] if found else Start(end)
