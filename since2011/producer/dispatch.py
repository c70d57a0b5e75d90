"""What to send next, and what an answer means: the producer's heart, without I/O.

``plan`` turns the state (batches, metadata, identity, transaction) and the time into requests; ``answered`` and
``lost`` turn events into a new state and settled batches. The sender carries requests out and brings events back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kafka2011.errors import Kafka2011Error
from since2011.client.backoff import Backoff
from since2011.client.metadata import NO_LEADER, Metadata
from since2011.producer.accumulator import Accumulator
from since2011.producer.batch import NOBODY, Batch, Identity, PartitionQueue
from since2011.producer.configuration import ProducerConfig
from since2011.producer.errors import FatalError, Kind, error_of, kind_of, known
from since2011.producer.idempotence import Idempotence
from since2011.producer.outcomes import Outcomes
from since2011.producer.transaction_requests import Node, Question, init_producer_id
from since2011.producer.transactions import Transactions
from since2011.wire.codec import Struct

Address = tuple[str, int]
_TRIED_AT_ONCE = 3
"""Brokers that are tried at the same time when none is connected."""


class Links(Protocol):
    """What ``plan`` has to know of the connections."""

    def ready(self, node: int, address: Address) -> bool:
        """Whether a request can go to this broker now; if not, work on it."""
        ...

    def in_flight(self, node: int) -> int:
        """Requests to it without an answer."""
        ...

    def open_nodes(self) -> list[int]:
        """Brokers with a connection."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Produce:
    """Send these batches to their leader."""

    node: int
    batches: dict[tuple[str, int], Batch]


@dataclass(frozen=True, slots=True, eq=False)
class AskMetadata:
    """Ask where the partitions are."""

    node: int
    body: Struct


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A question about our identity or our transaction."""

    node: int
    question: Question


Request = Produce | AskMetadata | Ask


@dataclass(slots=True)
class Plan:
    """What to send now, and when to look again if nothing happens before."""

    requests: list[Request] = field(default_factory=list)
    look_again_at: float = math.inf


class Dispatcher:
    """Decides for one producer. Under its lock; time is an argument."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        metadata: Metadata,
        idempotence: Idempotence | None,
        transactions: Transactions | None,
        backoff: Backoff,
    ) -> None:
        self._config, self._accumulator, self._metadata = config, accumulator, metadata
        self._idempotence, self._transactions = idempotence, transactions
        self.outcomes = Outcomes(config, accumulator, metadata, idempotence, transactions, backoff)
        self._backoff = backoff
        self._asking_identity = False
        self._identity_not_before = 0.0
        self._identity_failures = 0
        self._turn = 0
        self.fatal: FatalError | None = None
        """Nothing goes any more."""

    # -- planning -------------------------------------------------------------------------------------------------

    def plan(self, now: float, links: Links) -> Plan:
        """What to send now. What is planned is under way: an answer, or a loss, must follow."""
        plan = Plan()
        self.outcomes.expire(now)
        self.outcomes.drop_if_failed(self.fatal)
        self._ask_metadata(plan, now, links)
        self._ask_identity(plan, now, links)
        self._ask_coordinator(plan, now, links)
        self._send_batches(plan, now, links)
        plan.look_again_at = min(plan.look_again_at, self._accumulator.next_expiry(self._config.delivery_timeout_s))
        return plan

    def _ask_metadata(self, plan: Plan, now: float, links: Links) -> None:
        due = self._metadata.due_at(now)
        if due > now:
            plan.look_again_at = min(plan.look_again_at, due)
        elif (node := self._anybody(links)) is not None:
            plan.requests.append(AskMetadata(node, self._metadata.question()))

    def _ask_identity(self, plan: Plan, now: float, links: Links) -> None:
        idempotence = self._idempotence
        if idempotence is None:
            return
        if idempotence.resolve() and self._transactions is not None:
            self._transactions.failed(error_of("a batch of the transaction may be lost", known(45), kind=Kind.ABORT))
        if self._transactions is not None:
            return  # its coordinator gives the identity
        if (idempotence.bump() and idempotence.identity.valid) or self._asking_identity or self.fatal is not None:
            return
        if now < self._identity_not_before:
            plan.look_again_at = min(plan.look_again_at, self._identity_not_before)
        elif (node := self._anybody(links)) is not None:
            self._asking_identity = True
            plan.requests.append(Ask(node, init_producer_id(None, None, 2**31 - 1, NOBODY)))

    def _ask_coordinator(self, plan: Plan, now: float, links: Links) -> None:
        transactions = self._transactions
        if transactions is None:
            return
        due = transactions.due_at(now)
        if due > now:
            plan.look_again_at = min(plan.look_again_at, due)
            return
        question = transactions.next(incomplete=bool(self._accumulator.incomplete))
        if question is None:
            return
        target = question.node
        node = self._anybody(links) if target is None else self._named(target, links)
        if node is not None:  # else the connection, once it is open or has failed, lets us look again
            transactions.asked(question)
            plan.requests.append(Ask(node, question))

    def _send_batches(self, plan: Plan, now: float, links: Links) -> None:
        by_node: dict[int, list[PartitionQueue]] = {}
        ready: dict[int, None] = {}
        for queue in self._accumulator.active():
            if queue.leader == NO_LEADER:
                self._metadata.need_update()
                continue
            at = self._accumulator.ready_at(queue, now)
            if at > now:
                plan.look_again_at = min(plan.look_again_at, at)
            elif self._may_send(queue, queue.batches[0]):
                ready[queue.leader] = None
            by_node.setdefault(queue.leader, []).append(queue)
        for node in ready:
            address = self._metadata.brokers.get(node)
            if address is None:
                self._metadata.need_update()
                continue
            if not links.ready(node, address):
                continue
            room = self._config.max_in_flight - links.in_flight(node)
            while room > 0 and (batches := self._take(by_node[node], now)):
                plan.requests.append(Produce(node, {(b.queue.topic, b.queue.partition): b for b in batches}))
                room -= 1

    def _take(self, queues: Sequence[PartitionQueue], now: float) -> list[Batch]:
        """The batches of one request, if one of the queues is ready."""
        filled = [queue for queue in queues if queue.batches]
        ready_at = self._accumulator.ready_at
        if not any(ready_at(queue, now) <= now and self._may_send(queue, queue.batches[0]) for queue in filled):
            return []
        taken = list(self._accumulator.drain(filled, self._config.max_request_size, now, self._may_send))
        if self._idempotence is not None:
            for batch in taken:
                self._idempotence.assign(batch.queue, batch)
        return taken

    def _may_send(self, queue: PartitionQueue, batch: Batch) -> bool:
        if self._transactions is not None and not self._transactions.may_send(queue):
            return False
        return self._idempotence is None or self._idempotence.may_send(queue, batch)

    def _anybody(self, links: Links) -> int | None:
        """A broker that can be asked now."""
        brokers = self._metadata.brokers
        open_nodes = [node for node in links.open_nodes() if node in brokers]
        ready = [node for node in open_nodes if links.ready(node, brokers[node])]
        if ready:
            return min(ready, key=links.in_flight)
        if not open_nodes:
            nodes = list(brokers)
            self._turn += 1
            for number in range(min(_TRIED_AT_ONCE, len(nodes))):
                node = nodes[(self._turn + number) % len(nodes)]
                if links.ready(node, brokers[node]):
                    return node
        return None

    def _named(self, node: Node, links: Links) -> int | None:
        return node.id if links.ready(node.id, node.address) else None

    # -- events ---------------------------------------------------------------------------------------------------

    def sent_unanswered(self, request: Produce) -> None:
        """A request with acks=0 is written: that is all one will ever know."""
        for batch in request.batches.values():
            self.outcomes.stored(batch, -1, -1)

    def answered(self, request: Request, body: Struct, now: float) -> None:
        """A broker answered."""
        if isinstance(request, Produce):
            rows = {(topic.name, row.index): row for topic in body.topics for row in topic.partitions}
            for key, batch in request.batches.items():
                self.outcomes.decide(batch, rows.get(key), now)
        elif isinstance(request, AskMetadata):
            self._metadata.apply(body, now)
            self._place_all()
        elif self._transactions is not None:
            self._transactions.answered(request.question, body, now)
        else:
            self._identity_answered(body, now)

    def lost(self, request: Request, error: Kafka2011Error, now: float) -> None:
        """No answer will come."""
        if isinstance(request, Produce):
            self._metadata.need_update()
            for batch in request.batches.values():
                self.outcomes.unanswered(batch, error, now)
        elif isinstance(request, AskMetadata):
            self._metadata.failed(now)
        elif not error.retriable:
            self._cannot_ask(error)
        elif self._transactions is not None:
            self._transactions.lost(request.question, now)
        else:
            self._identity_later(now)

    def broken(self, error: Exception) -> None:
        """The sender has met a defect of ours."""
        self.fatal = FatalError(f"the producer failed: {error!r}; make another one, and report this")
        self.outcomes.fail_all(self.fatal)
        if self._transactions is not None:
            self._transactions.failed(self.fatal)

    def _place_all(self) -> None:
        for topic, places in self._metadata.topics.items():
            self._accumulator.place(topic, places)

    def _identity_answered(self, body: Struct, now: float) -> None:
        code = known(body.error)
        if not code:
            self._asking_identity, self._identity_failures = False, 0
            assert self._idempotence is not None
            self._idempotence.adopt(Identity(body.producer_id, body.epoch))
        elif kind_of(code) is Kind.RETRY:
            self._identity_later(now)
        else:
            self.fatal = FatalError(str(error_of("asking for a producer id", code)), code)

    def _identity_later(self, now: float) -> None:
        self._asking_identity = False
        self._identity_failures += 1
        self._identity_not_before = now + self._backoff.after(self._identity_failures)

    def _cannot_ask(self, error: Kafka2011Error) -> None:
        if self._transactions is not None:
            self._transactions.fail(error)
        else:
            self.fatal = FatalError(f"{error}; or set enable.idempotence=false")
