"""Is it still the same log? (issue 21, point 10)"""

from __future__ import annotations

import pytest

from hadoop_etl.cluster import Cluster
from hadoop_etl.errors import AnotherLog
from hadoop_etl.marks import MARK_SIZE, check_mark, make_mark
from kafka2011.errors import ConfigError
from tests.property.etl.machine import FakeLog

LOG = FakeLog([bytes([i]) * 40_000 for i in range(5)])
END = 200_000


def test_a_log_is_known_again() -> None:
    """The last bytes of a load, over segments, are the same when it has grown; deleted ones say nothing."""
    mark = make_mark(LOG.fetch, 0, END)
    assert mark is not None
    assert (mark.end, mark.size) == (END, MARK_SIZE)
    grown = FakeLog([*LOG.segments, b"more"])
    check_mark(mark, grown.fetch, 0, grown.end, "clicks 0-0")
    grown.away = 4
    check_mark(mark, grown.fetch, grown.first, grown.end, "clicks 0-0")
    assert make_mark(LOG.fetch, 0, 0) is None
    check_mark(None, LOG.fetch, 0, END, "clicks 0-0")


def test_another_log_is_refused() -> None:
    """One changed byte at the mark, or an end before it, is another log: the error says what to do."""
    mark = make_mark(LOG.fetch, 0, END)
    other = FakeLog([*LOG.segments[:-1], LOG.segments[-1][:-1] + b"!", b"longer than before"])
    with pytest.raises(AnotherLog, match="deleted and made again"):
        check_mark(mark, other.fetch, 0, other.end, "clicks 0-0")
    with pytest.raises(AnotherLog, match="ends at 40000"):
        check_mark(mark, LOG.fetch, 0, 40_000, "clicks 0-0")


def test_several_brokers_are_named_by_ids() -> None:
    """An order may change between two loads; the error shows the list to write instead."""
    assert list(Cluster.from_brokers("h:9092").brokers) == [0]
    assert list(Cluster.from_brokers("1:a:9092,0:[::1]:9093").brokers) == [1, 0]
    with pytest.raises(ConfigError, match="Write 0:a:9092,1:b:9092"):
        Cluster.from_brokers("a:9092,b:9092")
    with pytest.raises(ConfigError, match="need ids"):
        Cluster.from_brokers("7:a:9092,b:9092")
    with pytest.raises(ConfigError, match="same id"):
        Cluster.from_brokers("1:a:9092,1:b:9092")
