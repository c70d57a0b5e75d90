"""One connection: frames in, requests run in order, answers out.

Paper: §3.1. As thin as it can be: ``connection`` cuts frames, ``wire`` reads requests, ``intake`` takes message sets,
``handlers`` answer, ``sendfile`` sends. A connection is strictly sequential (docs/protocol.md): while an answer is on
its way no further request is looked at and nothing more is read, so a client that asks and never reads costs one read
buffer.

    reading   -> answering: a request has an answer the socket does not take at once; reading is paused
    answering -> reading:   the last byte left; requests that already arrived are run first
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from kafka2011.broker.connection import Connection
from kafka2011.broker.handlers import Answer
from kafka2011.broker.intake import PRODUCE, Intake
from kafka2011.broker.sendfile import Outbox
from kafka2011.errors import Kafka2011Error, WireError
from kafka2011.wire import MultiProduceRequest, ProduceRequest, SetSummary, parse_request

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

ANSWERS_PER_TURN = 64
"""Then the other connections have their turn, however many requests a client has sent at once."""


class BrokerProtocol(Connection):
    """Serve one client. Thread: reactor."""

    def __init__(self, broker: Broker, address: str) -> None:
        super().__init__(broker, address, broker.max_request_size)
        self._intake = Intake(broker, address)
        self._sets: deque[ProduceRequest] = deque()
        """What is left of a MULTIPRODUCE, whose sets share a budget."""
        self._budget = broker.request_budget()
        self._waiting = False
        """An answer is not there yet, or it is the turn of others."""
        self._late: Deferred[None] | None = None
        self.when_gone: list[Callable[[], None]] = []
        """Called, once each, when the connection is let go of."""

    def _let_go(self) -> None:
        super()._let_go()
        self._sets.clear()
        told, self.when_gone = self.when_gone, []
        for tell in told:
            tell()
        if self._late is not None:
            self._late.cancel()

    def _must_pause(self) -> bool:
        """Read only while nothing is owed to this client."""
        return self._waiting or (self._outbox is not None and self._outbox.busy)

    def _run(self) -> None:
        """Run requests until one must be waited for."""
        outbox = self._outbox
        assert outbox is not None
        try:
            self._run_whole_frames(outbox)
        except Kafka2011Error as error:
            self._append_what_came_before()
            self.drop("bad_request", str(error))
        except Exception as error:  # the broker outlives whatever one request does to it
            self._append_what_came_before()
            self._unforeseen(error)
        else:
            if self._splitter.broken is not None and not self._frames and not outbox.busy and not self._waiting:
                self.drop("bad_request", str(self._splitter.broken))
        self._pause_or_resume()

    def _run_whole_frames(self, outbox: Outbox) -> None:
        frames, intake, requests = self._frames, self._intake, self.broker.counters.requests
        n_answers = 0
        intake.new_turn()
        while (frames or self._sets) and not outbox.busy and not self._waiting and not intake.is_slow():
            if self._sets:
                self._add_sets()
            elif frames[0].startswith(PRODUCE):
                n_produces = intake.take(frames)
                self.n_requests += n_produces
                requests["produce"] += n_produces
            if not frames and not self._sets:
                break
            intake.finish()
            if intake.is_slow():
                break
            if n_answers == ANSWERS_PER_TURN or intake.turn_is_over():
                self._waiting = True
                self.broker.reactor.callLater(0, self._go_on)
                break
            n_answers += 1
            self.n_requests += 1
            self._request(frames.popleft(), outbox)
        intake.finish()
        if intake.is_slow():
            self._waiting = True
            # Whole, but not dealt with: these bytes are in flight as much as those of half a request.
            self.broker.limits.partial(self, self._splitter.pending + intake.slow_bytes())
            self.broker.unpacking.do(intake.check_slow).addCallbacks(self._slow_checked, self._no_answer)

    def _slow_checked(self, found: list[SetSummary | WireError]) -> None:
        """Take the sets that took long, even if the client has left meanwhile: it was never to get an answer."""
        if not self._gone:
            self.broker.limits.partial(self, self._splitter.pending)
        self._waiting = False
        try:
            self._intake.take_slow(found)
        except Kafka2011Error as error:
            self._append_what_came_before()
            self.drop("bad_request", str(error))
            return
        self._append_what_came_before()
        self._drained()

    def _request(self, frame: bytes, outbox: Outbox) -> None:
        broker = self.broker
        request = parse_request(frame, broker.requests.readers)
        if isinstance(request, MultiProduceRequest):
            broker.counters.requests["multiproduce"] += 1
            self._sets, self._budget = deque(request.produces), broker.request_budget()
            self._add_sets()
            return
        name, answer = broker.requests.handlers[type(request)]
        broker.counters.requests[name] += 1
        self._answer(answer(broker, request, self), outbox)

    def _answer(self, answer: Answer | Deferred[Answer], outbox: Outbox) -> None:
        """Send an answer, now or when it is there."""
        if isinstance(answer, Deferred):
            self._waiting = True
            self._late = answer.addCallbacks(self._late_answer, self._no_answer)
        else:
            outbox.send(answer)

    def _add_sets(self) -> None:
        """Take the sets of a MULTIPRODUCE, as many as a turn allows."""
        while self._sets:
            one = self._sets.popleft()
            self._intake.add(one.topic, one.partition, one.data, self._budget)
            if self._intake.turn_is_over():
                break

    def _append_what_came_before(self) -> None:
        try:
            self._intake.finish()
        except Kafka2011Error:
            pass  # a run that ends in a bad set: its good ones are appended, and the connection is closing anyway

    def _late_answer(self, answer: Answer) -> None:
        if not self._gone and self._outbox is not None:
            self._outbox.send(answer)
            self._go_on()

    def _no_answer(self, failure: Failure) -> None:
        if not self._gone and failure.value is not None:
            self._unforeseen(failure.value)

    def _go_on(self) -> None:
        self._waiting = False
        self._drained()

    def _drained(self) -> None:
        """The answer has left; run what arrived meanwhile."""
        self.active = self.broker.now()
        if not self._gone:
            self._run()


class BrokerFactory(Factory):
    """Make a protocol for each connection."""

    noisy = False

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def buildProtocol(self, addr: IAddress | None) -> BrokerProtocol:
        """One connection, named by its address."""
        return BrokerProtocol(self._broker, getattr(addr, "host", "unknown"))
