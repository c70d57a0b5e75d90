"""Is it still the same log? Some bytes of it are remembered, and looked at again before the next load.

A topic that was deleted and made again, a broker that took another one's place: offsets mean other messages there, and
a load that went on at the old offset would skip the beginning without a word. A 0.7 broker has no name for a log, but
it answers the same bytes at the same offset for as long as it keeps them (§3.1). So every load remembers the CRC of the
last bytes it planned, and the next one asks for them again. Bytes that retention deleted since tell nothing; a log made
again with the same bytes at the same place is the same to any reader.
"""

from __future__ import annotations

from binascii import crc32

from hadoop_etl.errors import AnotherLog
from hadoop_etl.ledger import Mark
from hadoop_etl.split import Fetch

MARK_SIZE = 64 << 10


def make_mark(fetch: Fetch, first: int, end: int) -> Mark | None:
    """A mark of the last bytes before ``end`` of a log that begins at ``first``; None if it is empty."""
    start = max(first, end - MARK_SIZE)
    return Mark(start, end - start, crc32(_bytes(fetch, start, end))) if end > start else None


def check_mark(mark: Mark | None, fetch: Fetch, first: int, end: int, where: str) -> None:
    """Refuse a log that has other bytes at the mark than it had, or ends before it."""
    if mark is None or mark.offset < first:
        return
    if mark.end > end:
        raise AnotherLog(refusal(where, f"it ends at {end}, and was longer than {mark.end - 1}"))
    if crc32(_bytes(fetch, mark.offset, mark.end)) != mark.crc:
        raise AnotherLog(refusal(where, f"the bytes from {mark.offset} to {mark.end} are others"))


def _bytes(fetch: Fetch, start: int, end: int) -> bytes:
    """The bytes of [start, end), asked for segment by segment."""
    found = b""
    while start + len(found) < end:
        more = fetch(start + len(found), end - start - len(found))
        if not more:
            break
        found += more
    return found


def refusal(where: str, why: str) -> str:
    """What is said of a log that is not the one it was."""
    return (
        f"{where} is not the log this table was loaded from: {why}. Was the topic deleted and made again, or do the "
        "brokers answer under other ids? Nothing was loaded. Name the brokers as before, load the new log into another "
        "warehouse, or rewind the table to before the first load of this partition and run again"
    )
