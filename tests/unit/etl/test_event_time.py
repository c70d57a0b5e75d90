"""The event's own time, whatever producers write (issue 21 point 2)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop_etl.columns import EARLIEST_MS, LATEST_MS
from hadoop_etl.decode import Format, make_decoder
from hadoop_etl.event_time import TimeRule
from hadoop_etl.formats import choose_format
from hadoop_etl.inference import infer

NOW_MS = 1_307_847_600_123
"""2011-06-12 03:00:00.123 UTC."""


def times(values: list[Any], kind: pa.DataType | None = None, rule: TimeRule | None = None) -> list[int | None]:
    time_ms, known, bad = (rule or TimeRule()).read(pa.array(values, kind))
    assert not bad
    return [int(t) if k else None for t, k in zip(time_ms, known, strict=True)]


def test_numbers_are_told_apart_by_their_size() -> None:
    """Seconds, milliseconds, microseconds and nanoseconds; whole or with a fraction; before 1970 too."""
    numbers = [NOW_MS // 1000, NOW_MS, NOW_MS * 1000, NOW_MS * 1_000_000, None]
    assert times(numbers) == [NOW_MS - 123, NOW_MS, NOW_MS, NOW_MS, None]
    assert times([NOW_MS / 1000, float(NOW_MS), -NOW_MS / 1000]) == [NOW_MS, NOW_MS, -NOW_MS]


@pytest.mark.parametrize(
    "text",
    [
        "2011-06-12T03:00:00.123Z",
        "2011-06-12T03:00:00.123+00:00",
        "2011-06-12 05:00:00.123456+02:00",
        "20110612T030000.123Z",
        "2011-06-12T03:00:00.123",
        str(NOW_MS),
        f" {NOW_MS / 1000} ",
    ],
)
def test_text_is_iso_8601_or_a_number(text: str) -> None:
    """With a zone, or without one in the configured zone; alone and among others."""
    assert times([text, None, "2011-06-12T03:00:00Z"]) == [NOW_MS, None, NOW_MS - 123]


def test_a_zone_for_times_without_one_and_for_the_day() -> None:
    """Half past midnight in Berlin is yesterday in UTC; the day changes with the clock of the zone."""
    berlin = TimeRule(zone="Europe/Berlin")
    (moment,) = times(["2011-06-12T00:30:00"], rule=berlin)
    assert moment == int(datetime.fromisoformat("2011-06-11T22:30:00+00:00").timestamp() * 1000)
    winter = int(datetime.fromisoformat("2011-12-31T23:30:00+00:00").timestamp() * 1000)
    local = berlin.local(np.array([moment, winter]))
    assert (local - np.array([moment, winter])).tolist() == [7_200_000, 3_600_000]


def test_a_format_says_it_exactly() -> None:
    """A unit, or a pattern; a number may be a date by pattern."""
    assert times([5, None], rule=TimeRule(format="ms")) == [5, None]
    assert times([5.5], rule=TimeRule(format="s")) == [5500]
    assert times(["12/06/2011 03:00"], rule=TimeRule(format="%d/%m/%Y %H:%M")) == [1_307_847_600_000]
    assert times([20110612], rule=TimeRule(format="%Y%m%d")) == [1_307_836_800_000]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.sampled_from(["auto", "s", "ms", "us", "ns"]))
def test_any_integer_is_a_time_or_has_a_reason(values: list[int | None], unit: str) -> None:
    """No number raises, wraps round or leaves the calendar."""
    time_ms, known, bad = TimeRule(format=unit).read(pa.array(values, pa.int64()))
    assert [v is not None for v in values] == [bool(k) or i in bad for i, k in enumerate(known)]
    assert all(EARLIEST_MS <= t <= LATEST_MS for t in time_ms[known])


@given(st.lists(st.none() | st.floats() | st.text(max_size=40), max_size=20), st.sampled_from(["auto", "ms", "%Y"]))
def test_any_float_or_text_is_a_time_or_has_a_reason(values: list[Any], unit: str) -> None:
    """The same of floats and text."""
    rule = TimeRule(format=unit, zone="America/New_York")
    for kind in (float, str):
        column = pa.array([v if isinstance(v, kind) else None for v in values], pa.float64() if kind is float else None)
        time_ms, known, bad = rule.read(column.cast(pa.string()) if kind is str else column)
        assert column.null_count + len(bad) + int(known.sum()) == len(values)
        assert ((rule.local(time_ms[known]) >= EARLIEST_MS) & (rule.local(time_ms[known]) <= LATEST_MS)).all()


def json_times(events: list[Any], **said: str) -> tuple[list[int | None], dict[int, str]]:
    """What a first load of these events makes of their times."""
    payloads = [json.dumps(event).encode() for event in events]
    form = choose_format("t", "json", said, registry=None, noted=None, sample=lambda: payloads)
    decoded = make_decoder(form).decode(pa.array(payloads, pa.binary()))
    column = form.time_column()
    assert column is not None
    time_ms, known, bad = form.time.read(decoded.columns.column(column).combine_chunks())
    dead = decoded.dead | {int(decoded.kept[i]): reason for i, reason in bad.items()}
    return [int(t) if k else None for t, k in zip(time_ms, known, strict=True)], dead


@pytest.mark.parametrize(
    ("odd", "is_readable"),
    [
        (NOW_MS + 0.5, True),
        ("2011-06-12T03:00:00.123Z", True),
        (None, True),
        ("n/a", False),
        ("1e999", False),
        (float("inf"), False),
        ([1], False),
    ],
)
def test_one_odd_time_costs_one_row(odd: Any, is_readable: bool) -> None:
    """A float, a text or a list among 500 numbers: 499 keep their time, the odd one is read or dead (issue 21-2)."""
    events = [{"timestamp": NOW_MS, "n": i} for i in range(500)]
    events[250] = {"timestamp": odd, "n": 250}
    found, dead = json_times(events)
    assert list(dead) == ([] if is_readable else [250])
    assert found.count(NOW_MS) == (499 if odd is None or not is_readable else 500)


def test_a_mixture_is_read_value_by_value() -> None:
    """Half the producers write numbers, half text, one writes nonsense: all times but one are there."""
    events = [{"timestamp": NOW_MS if i % 2 else "2011-06-12T03:00:00.123Z"} for i in range(100)] + [{"timestamp": "?"}]
    found, dead = json_times(events)
    assert found.count(NOW_MS) == 100
    assert list(dead.values()) == ["event time unreadable: '?'"]


def test_the_column_of_an_older_table_takes_what_others_write() -> None:
    """A table whose times are integers meets fractions and text later: read, or one dead row each."""
    form = Format("json", {0: infer([b'{"timestamp": 1307847600123}'], "t")})
    values = (b"1307847600.123", b'"2011-06-12T03:00:00.123Z"', b'"soon"')
    payloads = [b'{"timestamp": ' + value + b"}" for value in values]
    decoded = make_decoder(form).decode(pa.array(payloads, pa.binary()))
    assert decoded.columns.column("timestamp").to_pylist() == [NOW_MS, NOW_MS]
    assert list(decoded.dead) == [2]


def test_a_table_keeps_what_is_not_said_anew() -> None:
    """Field, format and zone are remembered with the table; a person may change any of them."""
    payloads = [b'{"at": "12/06/2011"}']
    said = {"time_field": "at", "time_format": "%d/%m/%Y", "time_zone": "Asia/Tokyo"}
    first = choose_format("t", "auto", said, registry=None, noted=None, sample=lambda: payloads)
    assert first.time == TimeRule("at", "%d/%m/%Y", "Asia/Tokyo")
    noted = first.as_dict()
    later = choose_format("t", "auto", {"time_zone": "UTC"}, registry=None, noted=noted, sample=lambda: payloads)
    assert later.time == TimeRule("at", "%d/%m/%Y", "UTC")
    assert Format.from_dict({"name": "raw", "schemas": {}, "time_field": "x"}).time == TimeRule("x")
