"""An event's own time: found in its field, whatever producers write there.

Paper: §4 (events are audited and filed by their own time).

A number is seconds, milliseconds, microseconds or nanoseconds since 1970, whole or with a fraction, told apart by its
size (``_SIZES``: every time from 1973 to 5138 is understood as it was meant). Text is such a number or ISO-8601;
without a zone of its own it is of the configured one. A format says it exactly: ``s``, ``ms``, ``us``, ``ns`` or a
pattern of strptime's.

No value is no time. A value nobody can read is one dead row, and says nothing about the events beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hadoop_etl.columns import EARLIEST_MS, LATEST_MS, Ints
from kafka2011.avro import TIME_FIELD

Flags = npt.NDArray[np.bool_]

AUTO = "auto"
_PER_MS = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}
"""How many of a unit make a millisecond."""
_SIZES = ((1e11, "s"), (1e14, "ms"), (1e17, "us"), (math.inf, "ns"))
"""Numbers below the first size are seconds, and so on."""

UNITS = (AUTO, *_PER_MS)
"""Formats that are not patterns."""

_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", re.ASCII)
_BEYOND = re.compile(r"(.{4,10}[T ])(?:(24)(:?00(?::?00(?:\.0+)?)?)|(\d\d:?\d\d:?)(60))(?![\d:])(.*)", re.ASCII)
"""The end of a day written as 24:00, and a second that was put in at the end of a day."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_QUARTER_MS = 900_000
"""Clocks are moved by whole quarters of an hour, at whole quarters."""


class UnreadableTime(ValueError):
    """A value that names no time."""

    def __init__(self, value: Any) -> None:
        text = repr(value)
        super().__init__(f"event time unreadable: {text if len(text) <= 80 else text[:80] + '…'}")


@dataclass(frozen=True, slots=True)
class TimeRule:
    """Where an event's time is, how it is written, and in which zone its day is reckoned; part of the plan."""

    field: str = TIME_FIELD
    format: str = AUTO
    zone: str = "UTC"

    def read(self, column: pa.Array) -> tuple[Ints, Flags, dict[int, str]]:
        """Times in milliseconds, which rows have one, and the reason for each that cannot be read."""
        if pa.types.is_timestamp(column.type):
            column = pc.cast(column, pa.timestamp("us", tz="UTC"), safe=False)
            return _floor_ms(column)
        if pa.types.is_date(column.type):
            return _floor_ms(pc.cast(pc.cast(column, pa.timestamp("us")), pa.timestamp("us", tz="UTC")))
        if not self._is_pattern and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return self._numbers(column)
        if self.format == AUTO and pa.types.is_string(column.type):
            try:
                return _floor_ms(pc.cast(column, pa.timestamp("us", tz="UTC")))
            except pa.ArrowException:
                pass  # not all of them are ISO-8601 with a zone; then one by one
        return _each(column, self._moment)

    def fit(self, value: Any, kind: pa.DataType) -> Any:
        """A value for a column of times that holds mostly another kind: text among numbers, a fraction among integers.

        Raises UnreadableTime.
        """
        if value is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            # Nanoseconds in a column of doubles lose some; no time is kept as fine as that.
            return value if pa.types.is_integer(kind) or abs(value) >= 2**63 else float(value)
        if isinstance(value, float) and (pa.types.is_floating(kind) or value.is_integer()):
            return value
        if self.format == AUTO:
            number = self._moment(value)
            if not _SIZES[0][0] <= abs(number) < _SIZES[1][0]:
                raise UnreadableTime(value)  # as a number it would be taken for seconds or microseconds
        elif isinstance(value, (str, float)) and _NUMBER.fullmatch(str(value)):
            number = round(float(value))
        else:
            raise UnreadableTime(value)
        return number if pa.types.is_integer(kind) else float(number)

    def local(self, time_ms: Ints) -> Ints:
        """The same moments as a clock on the wall of the zone shows them."""
        if self.zone == "UTC" or not len(time_ms):
            return time_ms
        quarters, places = np.unique(time_ms // _QUARTER_MS, return_inverse=True)
        shifts = [_shift_ms(self.zone, int(quarter)) for quarter in quarters]
        there: Ints = time_ms + np.array(shifts, dtype=np.int64)[places]
        return there.clip(EARLIEST_MS, LATEST_MS)

    @property
    def _is_pattern(self) -> bool:
        return self.format != AUTO and self.format not in _PER_MS

    def _numbers(self, column: pa.Array) -> tuple[Ints, Flags, dict[int, str]]:
        known = pc.is_valid(column).to_numpy(zero_copy_only=False)
        numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        sizes = np.abs(numbers.astype(np.float64))
        with np.errstate(invalid="ignore", over="ignore"):
            if self.format != AUTO:
                time_ms = _to_ms(numbers, self.format)
            else:
                time_ms = _to_ms(numbers, _SIZES[-1][1])
                for below, unit in reversed(_SIZES[:-1]):
                    time_ms = np.where(sizes < below, _to_ms(numbers, unit), time_ms)
            in_range = np.isfinite(sizes) & (time_ms >= EARLIEST_MS) & (time_ms <= LATEST_MS)
            # A product that went round the integers must not look like a time.
            if self.format != AUTO:
                in_range &= sizes / _PER_MS[self.format] <= LATEST_MS - EARLIEST_MS
        bad = {int(i): str(UnreadableTime(numbers[i].item())) for i in np.flatnonzero(known & ~in_range)}
        good = known & in_range
        return np.where(good, time_ms, 0).astype(np.int64), good, bad

    def _moment(self, value: Any) -> int:
        """One value as milliseconds; raises UnreadableTime."""
        try:
            if self._is_pattern:
                return self._ms_of(datetime.strptime(str(value), self.format), value)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return _number_ms(float(value), self.format, value)
            if not isinstance(value, str):
                raise UnreadableTime(value)
            if _NUMBER.fullmatch(value):
                return _number_ms(float(value), self.format, value)
            if self.format != AUTO:
                raise UnreadableTime(value)
            return self._ms_of(_iso(value.strip()), value)
        except (ValueError, OverflowError, TypeError):
            raise UnreadableTime(value) from None

    def _ms_of(self, moment: datetime, value: Any) -> int:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=_zone(self.zone))
        return (moment - _EPOCH) // _MS


def _iso(text: str) -> datetime:
    """A moment in ISO-8601, or as RFC 3339 writes it; raises ValueError."""
    text = text.replace("t", "T").replace("z", "Z")
    found = _BEYOND.fullmatch(text)
    if found is None:
        return datetime.fromisoformat(text)
    day, midnight, rest, minute, _, zone = found.groups()
    if midnight:
        return datetime.fromisoformat(f"{day}00{rest}{zone}") + timedelta(days=1)
    return datetime.fromisoformat(f"{day}{minute}59{zone}") + timedelta(seconds=1)


def _floor_ms(column: pa.Array) -> tuple[Ints, Flags, dict[int, str]]:
    """A column of microseconds."""
    numbers = pc.cast(column, pa.int64())
    known = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    time_ms = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False) // 1000
    in_range = (time_ms >= EARLIEST_MS) & (time_ms <= LATEST_MS)
    bad = {int(i): f"event time out of range: {time_ms[i]} ms" for i in np.flatnonzero(known & ~in_range)}
    return time_ms, known & in_range, bad


def _each(column: pa.Array, moment: Callable[[Any], int]) -> tuple[Ints, Flags, dict[int, str]]:
    time_ms = np.zeros(len(column), dtype=np.int64)
    known = np.zeros(len(column), dtype=np.bool_)
    bad: dict[int, str] = {}
    for place, value in enumerate(column.to_pylist()):
        if value is not None:
            try:
                time_ms[place] = moment(value)
                known[place] = True
            except UnreadableTime as error:
                bad[place] = str(error)
    return time_ms, known, bad


def _to_ms(numbers: npt.NDArray[Any], unit: str) -> npt.NDArray[Any]:
    whole: npt.NDArray[Any] = np.floor(numbers * 1000 if unit == "s" else numbers // _PER_MS[unit])
    return whole


def _number_ms(number: float, unit: str, value: Any) -> int:
    if not math.isfinite(number):
        raise UnreadableTime(value)
    if unit == AUTO:
        unit = next(name for below, name in _SIZES if abs(number) < below)
    time_ms = math.floor(number / _PER_MS[unit])
    if not EARLIEST_MS <= time_ms <= LATEST_MS:
        raise UnreadableTime(value)
    return time_ms


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=100_000)
def _shift_ms(zone: str, quarter: int) -> int:
    try:
        moment = _EPOCH + timedelta(milliseconds=quarter * _QUARTER_MS)
        return (moment.astimezone(_zone(zone)).utcoffset() or timedelta()) // _MS
    except OverflowError:
        return 0  # the first and the last day there is
