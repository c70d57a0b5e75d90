"""Small parts of the broker by themselves: rate-limited events, watchdog, counters, plug-ins, metrics names."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kafka2011.broker import plugins
from kafka2011.broker.addresses import is_loopback
from kafka2011.broker.counters import Histogram
from kafka2011.broker.doors import advertised_host
from kafka2011.broker.events import ConnectionClosed, ReactorLate
from kafka2011.broker.rate_limit import RateLimit
from kafka2011.broker.setup import limit_settings, log_settings
from kafka2011.broker.watchdog import Watchdog
from kafka2011.clock import ManualClock
from kafka2011.config import Config, Setting, load_config
from kafka2011.errors import ConfigError
from kafka2011.events import Journal


def closed(reason: str) -> ConnectionClosed:
    return ConnectionClosed(peer="10.0.0.1", principal="anonymous", kind="bad_request", reason=reason)


def test_a_flood_becomes_one_event_a_second() -> None:
    """Of many like events one a second is told, and it carries the number left out; other kinds are not held back."""
    clock = ManualClock()
    journal = Journal(clock=clock)
    rate_limit = RateLimit(journal, clock)
    for k in range(100):
        rate_limit.emit("a", closed(str(k)))
    rate_limit.emit("b", closed("other"))
    clock.advance(1.0)
    rate_limit.emit("a", closed("later"))

    told = [entry.event for entry in journal.since()]
    assert [(e.reason, e.suppressed) for e in told if isinstance(e, ConnectionClosed)] == [
        ("0", 0), ("other", 0), ("later", 99),
    ]  # fmt: skip


def test_the_watchdog_tells_once_where_the_reactor_stands() -> None:
    """A reactor that has not turned for a second is told of once, with its stack, and again only after it turned."""
    clock = ManualClock()
    told: list[ReactorLate] = []
    watchdog = Watchdog(clock, told.append)
    watchdog.tick()
    clock.advance(1.0)
    watchdog.look()
    assert told == []
    clock.advance(0.5)
    watchdog.look()
    watchdog.look()
    assert [event.seconds for event in told] == [1.5]
    assert "test_the_watchdog_tells_once" in told[0].stack
    watchdog.tick()
    clock.advance(2)
    watchdog.look()
    assert len(told) == 2


def test_a_histogram_puts_durations_where_they_belong() -> None:
    """A duration on a bound belongs to that bucket, one beyond the last to the open one."""
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 2.0):
        histogram.observe(seconds)

    assert histogram.counts == [2, 1, 1]
    assert histogram.total == pytest.approx(2.65)


class Wanted:
    """A plug-in that is wanted when its setting is true."""

    SETTINGS: ClassVar[tuple[Setting, ...]] = (Setting("extra.on", bool, False, "", "Switch.", "extra"),)

    @classmethod
    def wanted(cls, config: Config) -> bool:
        return config["extra.on"] is True


def fake_installed(missing: str | None = None) -> Any:
    absent = {} if missing is None else {missing: ModuleNotFoundError("No module named 'kazoo'", name="kazoo")}
    return lambda: ({"extra": Wanted}, absent)


def test_plug_ins_bring_settings_and_are_taken_when_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in's settings are the broker's; it takes part only if they ask for it."""
    monkeypatch.setattr(plugins, "installed", fake_installed())

    on, off = (plugins.broker_config(flags={"extra.on": value}, environ={}) for value in ("true", "false"))

    assert list(plugins.wanted(on, Journal())) == ["extra"]
    assert list(plugins.wanted(off, Journal())) == []


def test_a_missing_plug_in_matters_only_if_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed and not asked for: a debug event. Asked for: one sentence that says what to install."""
    monkeypatch.setattr(plugins, "installed", fake_installed(missing="zookeeper"))
    journal = Journal()

    assert plugins.wanted(plugins.broker_config(environ={}), journal) == {}
    assert [entry.event.name for entry in journal.since()] == ["plugin_skipped"]
    with pytest.raises(ConfigError, match=r"zk.connect \(flag\) needs the Python package 'kazoo'.*kafka2011\[zk\]"):
        plugins.wanted(plugins.broker_config(flags={"zk.connect": "h:1"}, environ={}), journal)
    off = plugins.broker_config(flags={"zk.connect": "h:1", "enable.zookeeper": "false"}, environ={})
    assert plugins.wanted(off, journal) == {}


@pytest.mark.parametrize(
    ("flags", "host", "loopback"),
    [
        ({}, "127.0.0.1", True),
        ({"bind.address": "10.1.2.3"}, "10.1.2.3", False),
        ({"bind.address": "0.0.0.0", "hostname": "node1"}, "node1", False),
        ({"bind.address": "localhost"}, "localhost", True),
    ],
)
def test_others_are_told_where_to_find_us(flags: dict[str, str], host: str, loopback: bool) -> None:
    """The advertised address is hostname, else where the broker listens, and never 0.0.0.0 (docs/protocol.md)."""
    config = load_config(flags=flags)

    assert (advertised_host(config), is_loopback(config.get("bind.address", str))) == (host, loopback)
    assert advertised_host(load_config(flags={"bind.address": "0.0.0.0"})) != "0.0.0.0"


def test_connections_leave_files_for_the_logs() -> None:
    """However many connections are allowed, half of the process's files stay for segments (docs/reliability.md)."""
    config = load_config(flags={"max.connections": "1000"})

    assert [limit_settings(config, n).connections for n in (64, 4096)] == [32, 1000]


def test_every_log_setting_reaches_the_logs() -> None:
    """Each setting of the table about logs changes what the logs are given, hours as milliseconds.

    See docs/configuration.md.
    """
    flags = {
        "num.partitions": "3", "topic.partition.count.map": "a:4", "log.file.size": "100", "topic.log.file.size": "a:5",
        "log.roll.hours": "2", "topic.log.roll.hours": "a:3", "log.flush.interval": "7",
        "log.default.flush.interval.ms": "8", "topic.flush.intervals.ms": "a:9", "log.retention.hours": "5",
        "topic.log.retention.hours": "a:6", "log.retention.size": "1000", "topic.log.retention.size": "a:10",
        "max.topics": "11", "max.topic.name.length": "12", "log.corrupt.policy": "truncate",
        "connection.frame.ms": "1500",
    }  # fmt: skip
    config = load_config(flags=flags)
    logs = log_settings(config)

    assert (logs.partition_count("a"), logs.partition_count("b")) == (4, 3)
    assert (logs.file_size_of("a"), logs.file_size_of("b")) == (5, 100)
    assert (logs.roll_ms_of("a"), logs.roll_ms_of("b")) == (3 * 3_600_000, 2 * 3_600_000)
    assert (logs.flush_interval_ms_of("a"), logs.flush_interval_ms_of("b"), logs.flush_messages) == (9, 8, 7)
    assert (logs.retention_ms_of("a"), logs.retention_ms_of("b")) == (6 * 3_600_000, 5 * 3_600_000)
    assert (logs.retention_size_of("a"), logs.retention_size_of("b")) == (10, 1000)
    assert (logs.max_topics, logs.max_topic_name_length, logs.corrupt_policy) == (11, 12, "truncate")
    assert limit_settings(config).frame_s == 1.5
