"""The producer of the paper: give it a topic and a set of messages.

    producer = Producer("127.0.0.1:9092")
    message = Message(b"test message str")
    set = MessageSet(message)
    producer.send("topic1", set)

Nobody acknowledges what is sent (§5): ``send`` returns nothing, and what is lost on the route is known only where the
producer itself noticed. That it tells, always: ``counters``, the journal, and either your ``on_drop`` or, without one,
a warning in the log and NotDelivered from ``close``. To judge loss, ask for ``acks``, which 2011 had not, or for an
``Audit`` (§4).

Paper: §3 (API), §3.2 (choice of the partition), §5 (batches).
"""

from __future__ import annotations

import atexit
import logging
import os
import ssl
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType

from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import (
    ConfigError,
    ConnectionFailed,
    Kafka2011Error,
    NotDelivered,
    ProducerClosed,
    RequestTimedOut,
)
from kafka2011.events import Journal
from kafka2011.producer.audit import Audit, AuditTimer
from kafka2011.producer.batch import Item, Messages, PendingBatch, check_sizes, measure, payload_of
from kafka2011.producer.counters import Counters
from kafka2011.producer.events import CallbackFailed, KeyIgnored, MessagesDropped, warn_by_log
from kafka2011.producer.partitioner import Key, Partitioner, hash_partitioner
from kafka2011.producer.routes import Routes
from kafka2011.producer.routing import Router, StaticRouter, parse_brokers, zookeeper_router
from kafka2011.producer.sender import AsyncSender, Sender, SyncSender
from kafka2011.producer.transmit import Acks, OnFull, ProducerSettings, Transmitter
from kafka2011.types import BrokerAddress
from kafka2011.wire import Codec

DEFAULT_BROKERS = "127.0.0.1:9092"
_CREATE_POLL_S = 0.05

OnDrop = Callable[[str, int, str], None]
"""Called with topic, number of messages and reason for everything the producer gives up."""


class Producer:
    """Publish messages to brokers. Thread: any.

    Brokers are named as ``"host:port,host:port"`` (0.7's ``broker.list``; default 127.0.0.1:9092), found in
    ZooKeeper (``zookeeper="host:port/chroot"``, 0.7's ``zk.connect``), or asked of a Router of yours.

    Asynchronous by default: ``send`` queues, a thread per broker sends. With ``sync=True`` ``send`` returns when the
    kernel (with ``acks``: the broker) has the messages, and raises if that failed.

    ``batch_size`` messages of a partition travel in one request, or fewer once ``linger_ms`` have passed. The queue of
    each broker is bounded by ``queue_size`` messages and ``queue_bytes``; when full, ``on_full`` says whether ``send``
    blocks, drops (counted, called back) or raises. ``retries`` bounds how often a batch is tried again.
    """

    def __init__(
        self,
        brokers: str | Sequence[BrokerAddress] | Router | None = None,
        *,
        zookeeper: str | None = None,
        partitioner: Partitioner | None = None,
        batch_size: int = 200,
        linger_ms: float = 5.0,
        queue_size: int = 100_000,
        queue_bytes: int = 64 << 20,
        on_full: OnFull = "block",
        codec: Codec = Codec.NONE,
        sync: bool = False,
        acks: Acks = "none",
        retries: int = 3,
        timeout_s: float = 30.0,
        connect_timeout_s: float = 5.0,
        max_message_size: int = 1_000_000,
        tls: ssl.SSLContext | None = None,
        audit: Audit | None = None,
        on_drop: OnDrop | None = None,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if min(batch_size, queue_size, queue_bytes, max_message_size) < 1 or min(linger_ms, retries) < 0:
            raise ConfigError("batch_size, queue_size, queue_bytes and max_message_size are at least 1, the rest 0")
        if on_full not in ("block", "drop", "raise") or acks not in ("none", "appended", "flushed", "all"):
            raise ConfigError("on_full is block, drop or raise; acks is none, appended or flushed")
        self._router = _router(brokers, zookeeper)
        if partitioner is not None and isinstance(self._router, StaticRouter) and not self._router.knows_partitions:
            raise ConfigError(
                "a partitioner needs to know the partitions, and a plain broker list does not; use "
                "StaticRouter(brokers, partitions=...) or a router over ZooKeeper"
            )
        self._partitioner = partitioner or hash_partitioner
        self._settings = ProducerSettings(
            batch_size=batch_size,
            linger_ms=linger_ms,
            queue_size=queue_size,
            queue_bytes=queue_bytes,
            on_full=on_full,
            codec=codec,
            acks=acks,
            retries=retries,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            max_message_size=max_message_size,
            tls=tls,
        )
        self._max_message_size = max_message_size
        self._sync = sync
        self._audit = audit
        self._on_drop = on_drop
        self._journal = journal or Journal()
        if journal is None and on_drop is None:
            warn_by_log(self._journal)
        self._clock = clock
        self._counters = Counters()
        self._given_up: Counter[str] = Counter()
        """What ``send`` had accepted and was not delivered, by reason."""
        self._keys_ignored: set[str] = set()
        self._closing = self._closed = False
        self._start()
        _producers.add(self)

    def _start(self) -> None:
        """Make what must not be shared across a fork: locks, queues, threads, connections."""
        self._lock = threading.RLock()
        self._report_lock = threading.Lock()
        self._senders: dict[BrokerAddress, tuple[Sender, Counters]] = {}
        self._routes = Routes(self._router, self._partitioner, self._settings.batch_size, self._sender, self._clock)
        self._sticky = self._routes.sticky
        self._moves = 0
        self._timer = AuditTimer(self._audit, self._publish_audit) if self._audit else None

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error on its route out is not hidden behind another; what was dropped has been logged or called back.
        self._close(30.0, tell=kind is None)

    def send(self, topic: str, messages: Messages, key: Key | None = None) -> None:
        """Publish a MessageSet, a Message, bytes, or a list of either, to one partition of ``topic``."""
        items: Sequence[Item]
        if type(messages) is bytes:
            items, size = (messages,), len(messages)
        else:
            items, size = measure(messages)
        if size > self._max_message_size:
            # Only a set larger than the largest message can hold one that is too large.
            check_sizes(items, self._max_message_size)
        if self._closed:
            raise ProducerClosed("send() after close(); make a new Producer")
        route = self._sticky.get(topic)
        if route is None or route.left < 0 or key is not None:
            route = self._routes.choose(topic, key)
            if key is not None and route.lane.partition < 0:
                self._tell_key_ignored(topic)
        route.left -= len(items)
        if items and not route.sender.put(route.lane, items, size):
            self._report(topic, len(items), "the queue is full", at_the_door=True)
        if self._audit is not None:
            self._audit.count(topic, map(payload_of, items))

    def create(self, topic: str, timeout: float = 10.0) -> None:
        """Create ``topic`` on every living broker now, so that the first key finds all the partitions it will have.

        Without it a broker creates a topic when it is first written to: the first keys are spread over few partitions,
        and go elsewhere once all brokers have the topic (§3.2 leaves open when). A topic that exists stays as it is.
        """
        deadline = self._clock.monotonic() + timeout
        brokers = sorted({candidate.broker_id for candidate in self._router.partitions(topic)})
        if not brokers:
            raise ConnectionFailed(f"no broker is alive that could take {topic!r}; nothing was created")
        for broker_id in brokers:
            address = self._router.address(broker_id)
            with BrokerConnection(address.host, address.port, timeout_s=timeout, tls=self._settings.tls) as connection:
                connection.produce(topic, 0, b"")
                connection.offsets(topic, 0)  # answered, so the empty set before it has been seen to
        while left := set(brokers) - self._router.holders(topic):
            if self._clock.monotonic() > deadline:
                raise RequestTimedOut(f"{topic!r} was not announced by brokers {sorted(left)} within {timeout:g} s")
            self._router.refresh()
            self._clock.sleep(_CREATE_POLL_S)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent so far left for a broker or was dropped; raise RequestTimedOut otherwise.

        Without ``acks``, "left" is not "arrived".
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        self._publish_audit()
        while True:
            moves = self._moves
            for sender, _ in list(self._senders.values()):
                if not sender.flush(deadline):
                    raise RequestTimedOut(f"not everything was sent within {timeout:g} s; it is still being tried")
            if moves == self._moves:  # else a broker failed meanwhile, and another's queue got its batches
                return

    def close(self, timeout: float | None = 30.0) -> None:
        """Send what is queued, then close; what cannot be sent in time is dropped, counted and called back.

        Without an ``on_drop`` of yours, raise NotDelivered if this producer gave up anything since it was made. What
        ``on_full="drop"`` turned away at the door was turned away at your word and does not count.
        """
        self._close(timeout, tell=True)

    def _close(self, timeout: float | None, *, tell: bool) -> None:
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._lock:
            first, self._closing = not self._closing, True
        if not first:
            return
        if self._timer is not None:
            self._timer.stop()
        self._publish_audit()
        self._closed = True
        closed: list[Sender] = []
        while left := [sender for sender, _ in list(self._senders.values()) if sender not in closed]:
            for sender in left:  # closing one may pass its last messages on to another, even to a new one
                sender.close(deadline)
            closed += left
        self._router.close()
        if tell and self._on_drop is None and self._given_up:
            raise NotDelivered(sum(self._given_up.values()), self._given_up)

    @property
    def counters(self) -> Counters:
        """The numbers so far, over all brokers."""
        total = Counters()
        total.add(self._counters)
        for sender, counters in list(self._senders.values()):
            total.add(counters)
            total.accepted += sender.accepted
        return total

    # -- the routes' other end ------------------------------------------------------------------------------------

    def _sender(self, address: BrokerAddress) -> Sender:
        with self._lock:
            if address not in self._senders:
                counters = Counters()
                transmitter = Transmitter(address, self._settings, counters, self._journal, self._move)
                sender: Sender = (
                    SyncSender(transmitter, self._lock)
                    if self._sync
                    else AsyncSender(transmitter, self._settings, self._report, self._clock)
                )
                self._senders[address] = sender, counters
            return self._senders[address][0]

    def _move(self, pending_batch: PendingBatch, attempts: int) -> bool:
        """Hand messages their broker did not take to another one; False if there is none that may have them."""
        size = sum(len(payload_of(item)) for item in pending_batch.items)
        for route in self._routes.elsewhere(pending_batch.lane, attempts):
            self._moves += 1
            if route.sender.put(route.lane, pending_batch.items, size, forced=True):
                return True
        return False

    # -- telling ------------------------------------------------------------------------------------------------

    def _report(self, topic: str, n: int, reason: str, at_the_door: bool = False) -> None:
        """Tell of messages given up: counted, in the journal, called back."""
        with self._report_lock:
            self._counters.drop(n, reason)
            if at_the_door:
                self._counters.accepted += n
            else:
                self._given_up[reason] += n
        self._journal.emit(MessagesDropped(topic=topic, n_messages=n, reason=reason))
        if self._on_drop is not None:
            try:
                self._on_drop(topic, n, reason)
            except Exception as error:  # the application's code must not end our thread
                self._journal.emit(CallbackFailed(error=repr(error)))

    def _tell_key_ignored(self, topic: str) -> None:
        if topic not in self._keys_ignored:
            self._keys_ignored.add(topic)
            self._journal.emit(KeyIgnored(topic=topic))

    def _publish_audit(self) -> None:
        if self._audit is None:
            return
        events = self._audit.take()
        if events:
            try:
                self.send(self._audit.topic, events)
            except Kafka2011Error as error:
                self._report(self._audit.topic, len(events), str(error), at_the_door=True)


def _router(brokers: str | Sequence[BrokerAddress] | Router | None, zookeeper: str | None) -> Router:
    if zookeeper is not None:
        if brokers is not None:
            raise ConfigError("a producer finds its brokers by a list or through ZooKeeper; name one of the two")
        return zookeeper_router(zookeeper)
    if brokers is None:
        brokers = DEFAULT_BROKERS
    if isinstance(brokers, str):
        return StaticRouter(parse_brokers(brokers))
    if isinstance(brokers, (list, tuple)):
        return StaticRouter(brokers)
    return brokers  # type: ignore[return-value]  # a list is a tuple or a list; mypy sees other sequences


_producers: weakref.WeakSet[Producer] = weakref.WeakSet()


def _after_fork() -> None:
    """In the child: threads did not come along, and what is queued is the parent's to send."""
    for producer in list(_producers):
        producer._start()


def _at_exit() -> None:
    """Say what is lost with a program that ends without ``close()``."""
    for producer in list(_producers):
        counters = producer.counters
        left = counters.accepted - counters.sent - counters.dropped
        if left and not producer._closing:
            logging.getLogger("kafka2011.producer").warning(
                "the program ended without Producer.close(): %d messages were still queued and are lost", left
            )


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
