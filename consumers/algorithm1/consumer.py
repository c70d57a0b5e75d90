"""The paper's consumer: ``Consumer(zookeeper, group).create_message_streams("topic1", 1)``.

    with Consumer("127.0.0.1:2181", "billing") as consumer:
        for message in consumer.create_message_streams("topic1")[0]:
            handle(message.payload)

Consumers of one group share the topic's partitions, each message going to one of them; different groups each get
everything. Who reads what is settled by Algorithm 1 among the consumers themselves.

Paper: §3 (the sample consumer), §3.2.
"""

from __future__ import annotations

import atexit
import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from random import Random
from types import TracebackType
from typing import overload

from consumers.algorithm1.assign import RULES
from consumers.algorithm1.editions import EDITIONS
from consumers.algorithm1.member import Member
from consumers.algorithm1.steps import Owned
from consumers.algorithm1.worker import Worker
from consumers.delivery import Delivery
from consumers.fetcher import RESET_POLICIES, Fetcher
from consumers.metrics import ConsumerCounters
from consumers.stream import Stream
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ConfigError, Kafka2011Error, RequestTimedOut
from kafka2011.events import Journal
from kafka2011.types import BrokerPartition, is_legal_name
from zk_registry import ensemble
from zk_registry.consumers import Subscription, new_consumer_id
from zk_registry.session import ZooKeeperSession
from zk_registry.states import Session


class Consumer:
    """One member of a consumer group. Thread: any; each stream belongs to one thread at a time.

    ``zookeeper`` is a connect string, or a session of its own, which is closed with the consumer.
    Offsets are stored every ``autocommit_interval_s``, before a rebalance, when closing, and by ``commit()``; with
    ``autocommit=False`` only by ``commit()``. ``reset`` says where to begin when no offset is stored or the stored one
    is outside the log: ``smallest``, ``largest`` or ``raise``. ``timeout_s`` lets a stream end after so long without a
    message; by default it never ends. ``share`` is the rule by which partitions are shared, the same in all members:
    by default that of Kafka 0.7, or ``fraction`` (``assign``).
    """

    def __init__(
        self,
        zookeeper: str | Session,
        group: str,
        *,
        consumer_id: str | None = None,
        edition: str = "sound",
        share: str | None = None,
        reset: str = "smallest",
        autocommit: bool = True,
        autocommit_interval_s: float = 10.0,
        timeout_s: float | None = None,
        fetch_size: int = 512 << 10,
        max_fetch_size: int = 64 << 20,
        queue_size: int = 1 << 20,
        session_timeout_s: float = 6.0,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        for what, name in (("group", group), ("consumer id", consumer_id or "x")):
            if not is_legal_name(name):
                raise ConfigError(f"{name!r} cannot be a {what}: use letters, digits, dot, dash and underscore")
        if edition not in EDITIONS:
            raise ConfigError(f"edition {edition!r} of Algorithm 1: use one of {', '.join(EDITIONS)}")
        if share is not None and share not in RULES:
            raise ConfigError(f"share {share!r}: use one of {', '.join(RULES)}, the same in the whole group")
        if reset not in RESET_POLICIES:
            raise ConfigError(f"reset {reset!r}: use one of {', '.join(RESET_POLICIES)}")
        self.group = group
        self.journal = journal or Journal(clock=clock)
        self._clock, self._edition = clock, EDITIONS[edition]
        if share is not None:
            self._edition = replace(self._edition, share=RULES[share])
        self._configured_id, self._first_id, self._births = consumer_id, "", 0
        self._autocommit_s = autocommit_interval_s if autocommit else None
        self._timeout_s, self._queue_size = timeout_s, queue_size
        self._new_fetcher = partial(
            Fetcher, reset_policy=reset, fetch_size=fetch_size, max_fetch_size=max_fetch_size, journal=self.journal
        )
        self._connect = zookeeper if isinstance(zookeeper, str) else None
        self._session: Session = (
            ZooKeeperSession(zookeeper, timeout_s=session_timeout_s, journal=self.journal, clock=clock)
            if isinstance(zookeeper, str)
            else zookeeper
        )
        self._streams: list[Stream] = []
        self._member: Member | None = None
        self._worker: Worker | None = None
        self._delivery: Delivery | None = None
        self._closed = False

    @overload
    def create_message_streams(self, topics: str, n_streams: int = 1) -> list[Stream]: ...

    @overload
    def create_message_streams(self, topics: Mapping[str, int]) -> dict[str, list[Stream]]: ...

    def create_message_streams(
        self, topics: str | Mapping[str, int], n_streams: int = 1
    ) -> list[Stream] | dict[str, list[Stream]]:
        """Join the group and return ``n_streams`` streams of a topic, or those of each topic of a mapping."""
        wanted = {topics: n_streams} if isinstance(topics, str) else dict(topics)
        subscription = Subscription.fixed(wanted)
        streams = {topic: self._new_streams(topic, n) for topic, n in wanted.items()}
        self._join(subscription, lambda topic, index: streams[topic][index])
        return streams[topics] if isinstance(topics, str) else streams

    def create_message_streams_by_filter(
        self, *, whitelist: str | None = None, blacklist: str | None = None, n_streams: int = 1
    ) -> list[Stream]:
        """Join the group and return streams over every topic that passes the filter, also future ones."""
        if (whitelist is None) is (blacklist is None):
            raise ConfigError("give a whitelist or a blacklist of topics, and not both")
        if whitelist is not None:
            subscription = Subscription.whitelist(whitelist, n_streams)
        else:
            subscription = Subscription.blacklist(blacklist or "", n_streams)
        streams = self._new_streams("filter", n_streams)
        self._join(subscription, lambda topic, index: streams[index])
        return streams

    def commit(self) -> int:
        """Store how far the application got; return how many offsets had changed.

        The message in the calling thread's hand counts as done. Raises a RegistryError if ZooKeeper did not confirm:
        then the commit may or may not have happened, and calling again does no harm.
        """
        member, worker = self._joined()
        for stream in self._streams:
            stream.finish()
        wanted: Future[int] = Future()
        member.wanted_commits.append(wanted)
        worker.wake()
        try:
            return wanted.result(3 * self._session.timeout_s)
        except TimeoutError:
            raise RequestTimedOut(
                f"group {self.group}: the commit was not confirmed in {3 * self._session.timeout_s:g} s; it may still "
                "happen. Try again, or go on: it is repeated with the next one"
            ) from None

    def seek(self, topic: str, partition: BrokerPartition, offset: int) -> None:
        """Go on at ``offset`` in a partition this consumer owns: backwards to read again, forwards to skip (§3.1)."""
        self._joined()
        assert self._delivery is not None
        self._delivery.seek(Owned(topic, partition), offset)

    @property
    def consumer_id(self) -> str:
        """This consumer's id in the registry; it changes with every new ZooKeeper session."""
        return self._joined()[0].consumer_id

    @property
    def owned(self) -> list[Owned]:
        """The partitions this consumer reads now."""
        return sorted(owned for stream in self._streams for owned in stream.partitions())

    @property
    def positions(self) -> dict[Owned, int]:
        """The next offset to read in each owned partition, as a commit would store it."""
        return {owned: at for stream in self._streams for owned, at in stream.positions().items()}

    @property
    def counters(self) -> ConsumerCounters:
        """Rebalances, commits and what went wrong with them."""
        return self._joined()[0].counters

    def close(self) -> None:
        """Stop, commit what is finished, release everything and leave; may be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        if self._worker is not None and self._member is not None:
            for stream in self._streams:
                stream.leave()
            self._member.closing = True
            self._worker.wake()
            # If ZooKeeper is away, waiting longer brings nothing: the end of the session removes our nodes.
            self._worker.join(self._session.timeout_s)
        self._session.close()
        if self._delivery is not None:
            self._delivery.close()
        for stream in self._streams:
            stream.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- joining ----------------------------------------------------------------------------------------------------

    def _new_streams(self, topic: str, n_streams: int) -> list[Stream]:
        if self._streams and self._worker is not None:
            raise ConfigError("streams are created once for each consumer; name all topics in one call")
        room = max(1, self._queue_size)
        made = [Stream(f"{topic}-{i}", timeout_s=self._timeout_s, room=room) for i in range(n_streams)]
        self._streams += made
        return made

    def _join(self, subscription: Subscription, stream_of: Callable[[str, int], Stream]) -> None:
        if self._closed:
            raise ConfigError(f"this consumer of group {self.group} is closed; make a new one")
        self._session.start()
        atexit.register(self.close)
        self._member = Member(
            self.group,
            subscription,
            new_id=self._new_id,
            session_id=lambda: self._session.session_id,
            clock=self._clock,
            journal=self.journal,
            random=Random(),
            edition=self._edition,
            autocommit_s=self._autocommit_s,
            patience_s=self._session.timeout_s + 2.0,
        )
        self._delivery = Delivery(stream_of, self._new_fetcher, self._clock)
        self._worker = Worker(self._member, self._session, self._delivery, self._streams, is_down=self._is_down)
        self._worker.start()
        deadline = self._clock.monotonic() + self._session.timeout_s
        while not self._worker.started.wait(0.2):
            # Joining either works or fails with a reason; the first rebalance may have to wait for others.
            if self._member.registered and self._clock.monotonic() > deadline:
                break
        if self._worker.failure is not None:
            self.close()
            raise self._worker.failure

    def _new_id(self) -> str:
        """A new id for each session; the order among the members stays, so that each gets its own share back."""
        if not self._first_id:
            host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:100]
            self._first_id = new_consumer_id(self.group, host, self._clock.wall_ms(), self._configured_id)
        self._births += 1
        return self._first_id if self._births == 1 else f"{self._first_id}-{self._births}"

    def _is_down(self) -> bool:
        return self._connect is not None and ensemble.has_no_majority(self._connect)

    def _joined(self) -> tuple[Member, Worker]:
        if self._member is None or self._worker is None:
            raise ConfigError("create_message_streams comes first")
        if self._closed:
            raise Kafka2011Error(f"this consumer of group {self.group} is closed; make a new one")
        return self._member, self._worker
