"""The broker: logs, sockets, timers and plug-ins put together.

Paper: §3 (brokers store the published messages), §3.1.

    start   logs recovered -> sockets listen -> timers -> plug-ins (registration)
    stop    plug-ins -> sockets -> flushes end -> logs flushed and closed -> clean-shutdown marker
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from kafka2011.broker import plugins, principal, state
from kafka2011.broker.admin_http import admin_site
from kafka2011.broker.counters import Counters
from kafka2011.broker.creations import CreationRate
from kafka2011.broker.doors import Doors, address_2011, advertised_host
from kafka2011.broker.events import (
    BrokerStarted,
    BrokerStopped,
    ProduceDropped,
    ReactorLate,
    RetentionFailed,
    StopFailed,
)
from kafka2011.broker.flusher import Flusher
from kafka2011.broker.limits import Limits
from kafka2011.broker.long_work import LongWork
from kafka2011.broker.protocol import BrokerFactory
from kafka2011.broker.rate_limit import RateLimit
from kafka2011.broker.reactor import DaemonThreads, DelayedCall, Reactor, every, in_thread, within
from kafka2011.broker.requests import Requests
from kafka2011.broker.setup import limit_settings, log_settings
from kafka2011.broker.tls import tls_options
from kafka2011.broker.visibility import Visibility
from kafka2011.broker.watchdog import Watchdog
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.config import Config
from kafka2011.errors import ConfigError, LogError, MessageTooLarge, TooManyTopics
from kafka2011.events import Journal
from kafka2011.log.log import Log
from kafka2011.log.ownership import check_ownership
from kafka2011.log.store import LogStore
from kafka2011.types import BrokerAddress
from kafka2011.wire import Budget, SetSummary, validate_set

T = TypeVar("T")

FIRST_RETENTION_S = 60.0
CHECKPOINT_S = 5.0
"""How often what was flushed is written down; a full disk is tried again as often."""


class Broker:
    """One broker. Thread: reactor."""

    def __init__(
        self, config: Config, *, reactor: Reactor, journal: Journal | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.config = config
        self.reactor = reactor
        self.journal = Journal(clock=clock) if journal is None else journal
        self.counters = Counters()
        self.now: Callable[[], float] = reactor.seconds
        self.max_request_size = config.integer("max.socket.request.bytes")
        self.acks_enabled = config["produce.acks.enable"] is True
        self.acks_timeout_s = config.integer("produce.acks.timeout.ms") / 1000
        self.tls = tls_options(config)
        self.store = LogStore(config.get("log.dir", Path), log_settings(config), clock=clock, journal=self.journal)
        self.creations = CreationRate(
            config.integer("max.topic.creations.per.second"), config.integer("max.topic.creations.burst"), self.now
        )
        self.limits = Limits(limit_settings(config), self.now)
        self.rate_limit = RateLimit(self.journal, clock)
        self.running = False
        self._takes_appends = True
        """False once the logs are being closed: what a thread reports after that comes too late."""
        self.admin_port: int | None = None
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._pool = DaemonThreads(0, config.integer("num.threads"), name="disk")
        self.unpacking = LongWork(reactor, "unpacking")
        """Where sets that take long to check are checked; plug-ins may use it for the same purpose."""
        self._flusher = Flusher(
            reactor,
            self._pool,
            self.counters,
            clock,
            n_threads=config.integer("num.threads"),
            early_s=config.integer("log.flush.for.readers.ms") / 1000,
        )
        self.visibility = Visibility(self._flusher)
        """How far readers may see; a plug-in may put its own in this place."""
        self.requests = Requests()
        self._watchdog = Watchdog(clock, self._late)
        self._loops: list[LoopingCall] = []
        self._first_retention: DelayedCall | None = None
        self.doors = Doors(config, reactor, self.tls)
        self._port = 0 if config["port.access"] == "off" else config.integer("port")
        self.gate: plugins.Gate | None = None
        """Where a plug-in decides when this broker serves; None: at once."""
        self.begin_again: Callable[[str], None] = lambda why: reactor.stop()
        """Called by a plug-in when this broker must end here, and another begin on the same directory."""
        self._plugins = {name: plugin(self) for name, plugin in plugins.wanted(config, self.journal).items()}

    @property
    def address(self) -> BrokerAddress:
        """Where others find this broker; port 0 where the 2011 port is off."""
        return BrokerAddress(self.config.integer("brokerid"), advertised_host(self.config), self._port)

    @property
    def plugins(self) -> Mapping[str, plugins.Plugin]:
        """The plug-ins in use, by name: one may need another."""
        return self._plugins

    # --- life ---

    def start(self) -> Deferred[None]:
        """Recover the logs (this blocks), listen, then start the plug-ins; fires when all are up."""
        try:
            if self.config["log.dir.allow.shared"] is not True:
                check_ownership(self.store.directory)
            self.store.open()
        except OSError as error:
            why = "not a directory" if isinstance(error, FileExistsError) else error.strerror
            raise ConfigError(f"cannot use log.dir {self.store.directory}: {why}; choose another") from error
        self.store.on_topic_created(self._topic_created)
        try:
            if self.gate is None:
                self._listen()
            self.admin_port = self.doors.open_admin(admin_site(self, self.reactor))
        except ConfigError:
            self.store.close()
            raise
        self._pool.start()
        self.unpacking.start()
        self._watchdog.start()
        flush_s = self.config.integer("log.default.flush.scheduler.interval.ms") / 1000
        self._loops += (
            every(self.reactor, flush_s, self._flusher.tick),
            every(self.reactor, 0.25, self._watchdog.tick),
            every(self.reactor, 1.0, self.limits.sweep),
            every(self.reactor, CHECKPOINT_S, self._checkpoint),
        )
        self._first_retention = self.reactor.callLater(FIRST_RETENTION_S, self._begin_retention)
        self.running = True
        return self.gate.begin(self._serve) if self.gate is not None else Deferred.fromCoroutine(self._start_plugins())

    def _serve(self) -> Deferred[None]:
        """Listen, and start the plug-ins: the gate has opened."""
        self._listen()
        return Deferred.fromCoroutine(self._start_plugins())

    async def _start_plugins(self) -> None:
        address, log_dir = self.address, str(self.config["log.dir"])
        self.journal.emit(
            BrokerStarted(broker_id=address.broker_id, host=address.host, port=address.port, log_dir=log_dir)
        )
        for warning in self.doors.without_a_lock():
            self.journal.emit(warning)
        for plugin in self._plugins.values():
            await maybeDeferred(plugin.start)

    def stop(self) -> Deferred[bool]:
        """Stop within ``shutdown.timeout.ms``; fires with whether everything was flushed and closed. Idempotent."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> bool:
        if not self.running:
            return True
        deadline = self.now() + self.config.integer("shutdown.timeout.ms") / 1000
        self.running = False
        if self.gate is not None:
            await self._within(deadline, [self.gate.end()])
        await self._within(deadline, [maybeDeferred(plugin.stop) for plugin in self._plugins.values()])
        await self._within(deadline, self.doors.close())
        self._takes_appends = False
        for connection in self.limits:
            connection.drop("shutdown", "the broker stops")
        for loop in self._loops:
            loop.stop()
        if self._first_retention is not None and self._first_retention.active():
            self._first_retention.cancel()
        self._watchdog.stop()
        closing = self._flusher.settle().addCallback(lambda _: in_thread(self.reactor, self._pool, self.store.close))
        clean = await self._within(deadline, [closing]) and not any(log.failed for log in self.store.logs())
        self.journal.emit(BrokerStopped(broker_id=self.address.broker_id, clean=clean))
        if clean:
            self._pool.stop()
            self.unpacking.stop()
        return clean

    async def _within(self, deadline: float, waits: list[Deferred[Any]]) -> bool:
        done = True
        for wait in waits:
            try:
                done &= await within(self.reactor, max(0.01, deadline - self.now()), wait)
            except Exception as error:  # whatever fails while stopping, the rest is still stopped
                self.journal.emit(StopFailed(error=repr(error)))
                done = False
        return done

    # --- the way in ---

    def log_for_produce(self, topic: str, partition: int, address: str = "") -> Log:
        """The log a produce goes to, created if need be; -1 picks one at random that takes it (docs/protocol.md).

        Raises TooManyTopics if the client at ``address`` has had too many topics created.
        """
        if partition == -1:
            count = self.store.partition_count(topic)
            partition = random.randrange(count)
            if not self.store.takes(topic, partition):
                partition = random.choice([p for p in range(count) if self.store.takes(topic, p)] or [partition])
        log = self.store.get(topic, partition)
        if log is None:
            if not self.store.has_topic(topic) and not self.creations.take(address):
                raise TooManyTopics(f"{topic} is not created: {self.creations.sentence}")
            log = self.store.get_or_create(topic, partition)
        return log

    def append(
        self, topic: str, partition: int, data: bytes, summary: SetSummary | None = None
    ) -> tuple[int, int]:
        """Check ``data`` (unless ``summary`` says it was) and append it; return its first and next offset."""
        log = self.log_for_produce(topic, partition)
        if summary is None:
            summary = validate_set(data, budget=self.request_budget())
        most = self.config.integer("max.message.size")
        if summary.largest_payload > most:
            reason = f"a payload of {summary.largest_payload} bytes; max.message.size is {most}"
            self.dropped(topic, log.partition, "too_large", reason)
            raise MessageTooLarge(f"{topic}-{log.partition}: {reason}; nothing of the set was appended")
        if not summary.size:
            return log.end_offset, log.end_offset
        return self.append_to(log, data[: summary.size], summary.n_messages)

    def request_budget(self) -> Budget:
        """What one request may inflate to and hold."""
        config = self.config
        return Budget(config.integer("max.request.inflated.bytes"), config.integer("max.request.messages"))

    def append_to(self, log: Log, data: bytes, n_messages: int) -> tuple[int, int]:
        """Append a checked set, count it, and flush when due."""
        if not self._takes_appends:
            raise LogError(f"{log.topic}-{log.partition}: the broker stops; nothing was appended")
        place = log.append(data, n_messages)
        counts = self.counters.topics[log.topic]
        counts.appended_messages += n_messages
        counts.appended_bytes += len(data)
        self._flusher.appended(log)
        return place

    def dropped(self, topic: str, partition: int, kind: str, reason: str, n_sets: int = 1) -> None:
        """Count message sets that were refused while their connection stays."""
        self.counters.dropped[kind] += n_sets
        topics = self.counters.topics
        # A topic that was never created has no counters of its own: names sent by strangers must not fill memory.
        if topic in topics or self.store.has_topic(topic):
            topics[topic].dropped_sets += n_sets
        self.rate_limit.emit(kind, ProduceDropped(topic=topic, partition=partition, kind=kind, reason=reason))

    # --- flush ---

    def flush(self, log: Log) -> None:
        """Flush ``log`` soon, in a thread."""
        self._flusher.flush(log)

    def wanted(self, log: Log) -> None:
        """Somebody waits for what comes after the flushed end of ``log``."""
        self._flusher.wanted(log)

    def when_flushed(self, log: Log, offset: int) -> Deferred[None]:
        """Fires when everything before ``offset`` is on disk and visible; fails with FlushFailed. Cancellable."""
        return self._flusher.when_flushed(log, offset)

    def in_disk_thread(self, work: Callable[[], T]) -> Deferred[T]:
        """Run what waits for the disk in a thread; fires with what it returned."""
        return in_thread(self.reactor, self._pool, work)

    def on_flushed(self, callback: Callable[[Log], None]) -> None:
        """Call ``callback(log)`` after every flush."""
        self._flusher.on_flushed(callback)

    # --- what others see ---

    def state(self) -> dict[str, Any]:
        """Everything ``/state`` shows."""
        address = self.address
        return {
            "broker_id": address.broker_id,
            "host": address.host,
            "port": address.port,
            "admin_port": self.admin_port,
            "pid": os.getpid(),
            "started_ms": self._started_ms,
            "connections": len(self.limits),
            "principals": principal.counted(self.limits),
            "topics": state.topics(self.store),
            "offline": state.offline(self.store),
            "missing": state.missing(self.store),
            "no_room": self.store.no_room,
            "counters": self.counters.as_dict(),
            "plugins": {name: plugin.state() for name, plugin in self._plugins.items()},
        }

    # --- inside ---

    def _listen(self) -> None:
        address = address_2011(self.config)
        if address is None and self.config["modern.port"] is None:
            raise ConfigError("port.access=off and no modern.port: nobody could reach this broker")
        if address is not None:
            self._port = self.doors.open(self._port, BrokerFactory(self), address).getHost().port

    def _checkpoint(self) -> Deferred[None]:
        return in_thread(self.reactor, self._pool, self.store.maybe_checkpoint)

    def _begin_retention(self) -> None:
        minutes = self.config.integer("log.cleanup.interval.mins")
        self._loops.append(every(self.reactor, minutes * 60.0, self._retain, now=True))

    def _retain(self) -> Deferred[None]:
        """One pass of retention, in a thread (§3.1: deleted after a time, typically seven days)."""

        def done(deleted: list[tuple[Log, int]]) -> None:
            self.counters.deleted_segments += sum(n for _, n in deleted)

        def failed(failure: Failure) -> None:
            self.journal.emit(RetentionFailed(error=failure.getErrorMessage()))

        return in_thread(self.reactor, self._pool, self.store.apply_retention).addCallbacks(done, failed)

    def _topic_created(self, topic: str, n_partitions: int) -> None:
        for plugin in self._plugins.values():
            plugin.topic_created(topic, n_partitions)

    def _late(self, event: ReactorLate) -> None:
        self.counters.reactor_late += 1
        self.journal.emit(event)
