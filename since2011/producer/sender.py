"""The producer's own thread: it carries out what the dispatcher plans, and runs callbacks.

The lock is held to plan and to take in answers, never while something is written, read, encoded or called back.

Python runs one thread at a time, and a thread that computes gives way only every 5 ms: an application that sends
without a pause would let the sender write a few batches in that time. So ``send`` lets the sender go first after every
few batches (``let_go_first``), for as long as it has something to do.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import cast

from kafka2011.clock import Clock
from since2011.client.network import Answered, Network
from since2011.producer.batch import Batch
from since2011.producer.configuration import ProducerConfig
from since2011.producer.dispatch import AskMetadata, Dispatcher, Produce, Request
from since2011.producer.interceptors import Interceptors
from since2011.wire.codec import ApiKey, Struct

log = logging.getLogger(__name__)

_PRODUCE, _METADATA = 11, 12
_GO_FIRST_S = 0.005


class Sender:
    """Runs until it is told to stop. ``wake`` and ``let_go_first`` from any thread, with or without the lock."""

    def __init__(
        self,
        config: ProducerConfig,
        dispatcher: Dispatcher,
        network: Network,
        changed: threading.Condition,
        interceptors: Interceptors,
        clock: Clock,
    ) -> None:
        self._config, self._dispatcher, self._network = config, dispatcher, network
        self._changed, self._interceptors, self._clock = changed, interceptors, clock
        self._asleep = False
        self._turn_over = threading.Event()
        self._stop = False
        self.requests = self.callback_errors = 0
        self.thread = threading.Thread(target=self._run, daemon=True, name=f"{config.client_id}-sender")

    def start(self) -> None:
        self.thread.start()

    def wake(self) -> None:
        """There is something to look at."""
        if self._asleep:
            self._asleep = False
            self._network.wake()

    def let_go_first(self) -> None:
        """Wait until the sender has done what there is to do, a few milliseconds at most."""
        self._turn_over.clear()
        self._asleep = False
        self._network.wake()
        self._turn_over.wait(_GO_FIRST_S)

    def stop(self) -> None:
        """End the thread after what it is doing, callbacks included."""
        self._stop = True
        self._network.wake()

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop:
                self._turn()
        except Exception as error:  # a defect; whoever waits must hear of it
            log.exception("the producer's thread failed")
            with self._changed:
                self._dispatcher.broken(error)
                self._changed.notify_all()
        finally:
            self._call_back()
            self._network.close()

    def _turn(self) -> None:
        clock, dispatcher = self._clock, self._dispatcher
        with self._changed:
            # Set before planning: what is added from now on wakes us up.
            self._asleep = True
            plan = dispatcher.plan(clock.monotonic(), self._network)
            self._changed.notify_all()
        for request in plan.requests:
            self._carry_out(request)
        self._call_back()
        if not plan.requests:
            self._turn_over.set()
        # With acks=0 no answer lets us look again: what is sent makes room at once.
        at_once = self._config.acks == 0 and any(isinstance(request, Produce) for request in plan.requests)
        wait = 0.0 if at_once else plan.look_again_at - clock.monotonic()
        events = self._network.poll(math.inf if wait == math.inf else max(0.0, wait))
        if events:
            with self._changed:
                now = clock.monotonic()
                for event in events:
                    tag = cast("Request", event.tag)
                    if isinstance(event, Answered):
                        dispatcher.answered(tag, event.body, now)
                    else:
                        dispatcher.lost(tag, event.error, now)
                self._changed.notify_all()
            self._call_back()

    def _carry_out(self, request: Request) -> None:
        network = self._network
        if isinstance(request, Produce):
            self.requests += 1
            answered = self._config.acks != 0
            went = network.send(
                request.node, ApiKey.PRODUCE, _PRODUCE, self._body(request.batches), request, answered=answered
            )
            if not answered and went:
                with self._changed:
                    self._dispatcher.sent_unanswered(request)
        elif isinstance(request, AskMetadata):
            network.send(request.node, ApiKey.METADATA, _METADATA, request.body, request)
        else:
            key, newest = request.question.step.value
            network.send(request.node, key, newest, request.question.body, request)

    def _body(self, batches: dict[tuple[str, int], Batch]) -> Struct:
        topics: dict[str, list[Struct]] = {}
        transactional = self._config.transactional_id is not None
        for (topic, partition), batch in batches.items():
            records = batch.encode(self._config.codec, transactional=transactional)
            topics.setdefault(topic, []).append(Struct(index=partition, records=records))
        return Struct(
            transactional_id=self._config.transactional_id,
            acks=self._config.acks,
            timeout_ms=int(self._config.request_timeout_s * 1000),
            topics=[Struct(name=name, partitions=rows) for name, rows in topics.items()],
        )

    def _call_back(self) -> None:
        """Tell of what is settled, in the order in which it was."""
        with self._changed:
            settled, self._dispatcher.outcomes.settled = self._dispatcher.outcomes.settled, []
        for batch in settled:
            for delivery in batch.deliveries if self._interceptors else ():
                self._safely(lambda delivery=delivery: delivery.tell(self._interceptors.on_acknowledgement))  # type: ignore[misc]
            for delivery, callback in batch.callbacks:
                self._safely(lambda delivery=delivery, callback=callback: delivery.tell(callback))  # type: ignore[misc]
            # Deliveries know their batch; that it forgets them lets both go without the garbage collector.
            batch.deliveries, batch.callbacks = [], []
            batch.over()

    def _safely(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            self.callback_errors += 1
            log.exception("a callback failed; the record it was told of is not affected")
