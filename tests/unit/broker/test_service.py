"""A whole broker on a clock the test moves: timers, unforeseen errors, plug-ins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from twisted.internet.testing import MemoryReactorClock, StringTransport

from kafka2011.broker import plugins
from kafka2011.broker.protocol import BrokerProtocol
from kafka2011.broker.service import Broker
from kafka2011.config import Config, Setting, load_config
from kafka2011.errors import ConfigError
from kafka2011.wire import OffsetsRequest
from tests.waiting import until


class TestReactor(MemoryReactorClock):
    """Twisted's in-memory reactor; what threads report is done when the test turns it."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self._told: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self._lock = threading.Lock()

    def callFromThread(self, call: Callable[..., object], *args: object, **kwargs: object) -> None:  # type: ignore[override]
        with self._lock:
            self._told.append((lambda *a: call(*a, **kwargs), args))

    def turn(self) -> bool:
        """Do what threads have asked for; tell whether there was anything."""
        with self._lock:
            told, self._told = self._told, []
        for call, args in told:
            call(*args)
        return bool(told)


class Recorder:
    """A plug-in that writes down what it is told."""

    SETTINGS: ClassVar[tuple[Setting, ...]] = ()
    calls: ClassVar[list[str]] = []

    def __init__(self, broker: Broker) -> None:
        self.calls.append(f"made for broker {broker.address.broker_id}")

    @classmethod
    def wanted(cls, config: Config) -> bool:
        return True

    def start(self) -> None:
        self.calls.append("start")

    def topic_created(self, topic: str, n_partitions: int) -> None:
        self.calls.append(f"topic {topic} {n_partitions}")

    def stop(self) -> None:
        self.calls.append("stop")

    def state(self) -> dict[str, Any]:
        return {"calls": len(self.calls)}

    def trouble(self) -> str | None:
        return None

    def collectors(self) -> tuple[()]:
        return ()


@pytest.fixture
def reactor() -> TestReactor:
    return TestReactor()


@pytest.fixture
def broker(tmp_path: Path, reactor: TestReactor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(plugins, "installed", lambda: ({"recorder": Recorder}, {}))
    Recorder.calls.clear()
    flags = {"log.dir": str(tmp_path / "data"), "num.partitions": "2", "brokerid": "7", "port": "0"}
    running: Any = reactor
    one = Broker(load_config(flags=flags), reactor=running)
    yield one
    stopping = one.stop()
    until(lambda: reactor.turn() or stopping.called, "the broker stopped")


def test_plug_ins_live_with_the_broker(broker: Broker, reactor: TestReactor) -> None:
    """Plug-ins start after the sockets listen, hear of each topic once, are stopped first, and show their state."""
    broker.start()
    broker.append("clicks", 0, b"")
    broker.append("clicks", 1, b"")
    state = broker.state()
    stopping = broker.stop()
    until(lambda: reactor.turn() or stopping.called, "the broker stopped")

    assert Recorder.calls == ["made for broker 7", "start", "topic clicks 2", "stop"]
    assert state["plugins"] == {"recorder": {"calls": 3}}
    assert len(reactor.tcpServers) == 1


def test_retention_runs_after_a_minute_and_then_every_ten(
    broker: Broker, reactor: TestReactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cleaner runs first after 60 s, then every log.cleanup.interval.mins, in a thread (docs/log.md)."""
    runs: list[str] = []

    def retain() -> list[tuple[Any, int]]:
        runs.append(threading.current_thread().name)
        return []

    monkeypatch.setattr(broker.store, "apply_retention", retain)
    broker.start()
    reactor.advance(59)
    assert runs == []
    reactor.advance(2)
    until(lambda: reactor.turn() and len(runs) == 1, "retention has run once")
    reactor.advance(599)
    reactor.advance(2)
    until(lambda: reactor.turn() and len(runs) == 2, "and again ten minutes later")

    assert threading.current_thread().name not in runs


def test_an_unforeseen_error_closes_one_connection(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception nobody foresaw closes that connection, is counted and told; the broker lives (§2.2)."""

    class Client(StringTransport):
        """A connection that can be aborted."""

        aborted = False

        def abortConnection(self) -> None:
            self.aborted = True

    def boom(topic: str, partition: int) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr("kafka2011.broker.protocol.BrokerProtocol._tune", lambda *_: None)
    monkeypatch.setattr(Client, "getHandle", lambda _: None, raising=False)
    monkeypatch.setattr(broker.store, "get", boom)
    broker.running = True
    connections = [BrokerProtocol(broker, "10.0.0.1") for _ in range(2)]
    clients = [Client(), Client()]
    for connection, client in zip(connections, clients, strict=True):
        connection.makeConnection(client)
    connections[0].dataReceived(OffsetsRequest("t", 0, -1, 1).encode())
    broker.running = False

    assert [client.aborted for client in clients] == [True, False]
    assert broker.counters.handler_errors == 1
    assert list(broker.limits) == [connections[1]]
    (event,) = [entry.event for entry in broker.journal.since() if entry.event.name == "handler_failed"]
    assert "nobody thought of this" in event.as_dict()["trace"]


def test_tls_needs_both_files(tmp_path: Path, reactor: TestReactor) -> None:
    """A certificate without a key, or files that hold neither, are refused with a sentence."""
    running: Any = reactor
    alone = load_config(flags={"tls.certificate": "c.pem"})
    (tmp_path / "pem").write_text("nothing")
    wrong = load_config(flags={"tls.certificate": str(tmp_path / "pem"), "tls.key": str(tmp_path / "pem")})

    with pytest.raises(ConfigError, match=r"both tls\.certificate and tls\.key"):
        Broker(alone, reactor=running)
    with pytest.raises(ConfigError, match=r"tls\.certificate .*pem holds no PEM certificate"):
        Broker(wrong, reactor=running)
