"""Time, links, sessions and faults of one run: three brokers, one partition, one ZooKeeper."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from consumers.sim.replication.broker import Broker, Decision
from consumers.sim.replication.checker import Checker, Violation
from consumers.sim.replication.controller import RETRY_S, Controller
from consumers.sim.replication.faults import FAULTS_UNTIL_S, SESSION_S, ZOOKEEPER, Fault, random_faults
from consumers.sim.replication.registry import Registry
from consumers.sim.replication.rules import TODAY, Rules
from since2011.replication.leader import ProposeIsr

SETTLED_AT_S = 40.0
PRODUCE_EVERY_S = 0.12


@dataclass
class World:
    """One run: a seed, the faults drawn from it or given, and the rules the brokers follow."""

    seed: int
    rules: Rules = TODAY
    faults: list[Fault] | None = None
    replicas: tuple[int, ...] = (0, 1, 2)
    lines: list[str] | None = None
    now: float = 0.0
    registry: Registry = field(default_factory=Registry)
    checker: Checker = field(default_factory=Checker)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.min_insync = 1 + self.seed % 2
        if self.faults is None:
            self.faults = random_faults(self.seed, self.replicas)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._n = self._value = 0
        self._cut: set[frozenset[int]] = set()
        self.brokers = [Broker(self, number) for number in self.replicas]
        self._controllers: list[Controller] = []

    # -- time ---------------------------------------------------------------------------------------------------

    def after(self, delay: float, act: Any) -> None:
        """Do something later."""
        self._n += 1
        heapq.heappush(self._queue, (self.now + delay, self._n, act))

    def every(self, broker: Broker, delay: float, act: Callable[[], None]) -> None:
        """Do something again and again for as long as this life of a broker lasts."""
        life = broker.life

        def again() -> None:
            if broker.up and broker.life == life:
                act()
                self.after(delay * self.random.uniform(0.7, 1.3), again)

        self.after(delay * self.random.random(), again)

    def say(self, text: str) -> None:
        """One line of the transcript."""
        if self.lines is not None:
            self.lines.append(f"{self.now:7.3f}  {text}")

    # -- a run --------------------------------------------------------------------------------------------------

    def run(self) -> Violation | None:
        """Run to the end; the promise that was broken, if any."""
        for broker in self.brokers:
            self._start(broker)
        self.after(0.1, self._produce)
        for fault in self.faults or ():
            self.after(fault.at, lambda fault=fault: self._do(fault))
        try:
            while self._queue and self.now < SETTLED_AT_S:
                self.now, _, act = heapq.heappop(self._queue)
                act()
                self.checker.states(self.registry.history)
                if self._n % 128 == 0:
                    self.checker.alike(self.brokers)
            self._end()
        except Violation as violation:
            self.say(f"VIOLATION {violation}")
            return violation
        return None

    def _end(self) -> None:
        state = self.registry.state
        leader = None if state is None or state.leader < 0 else self.brokers[state.leader]
        if state is None or leader is None or leader.leader is None:
            raise Violation("whole", f"nobody leads: {state}")
        self.checker.at_the_end(leader, state, self.brokers)

    # -- messages -----------------------------------------------------------------------------------------------

    def _latency(self) -> float:
        return self.random.expovariate(1 / 0.008) + 0.001

    def is_cut(self, one: int, other: int) -> bool:
        """Whether nothing passes between two of them."""
        return frozenset((one, other)) in self._cut

    def call(self, source: Broker, target: int, request: object, answered: Callable[[object, object], None]) -> None:
        """Send a request; the answer comes, late, or never."""
        life, there = source.life, self.brokers[target]

        def arrive() -> None:
            if not there.up or self.is_cut(source.number, target):
                return
            answer = there.serve(source.number, request)
            self.after(self._latency(), lambda: back(answer))

        def back(answer: object) -> None:
            if source.up and source.life == life and not self.is_cut(source.number, target):
                answered(request, answer)

        self.after(self._latency(), arrive)

    def propose(self, broker: Broker, action: ProposeIsr) -> None:
        """Let a leader write its in-sync set to ZooKeeper, as soon as it can be reached."""
        life, epoch = broker.life, broker.epoch

        def write() -> None:
            if not broker.up or broker.life != life or broker.epoch != epoch:
                return
            if self.is_cut(broker.number, ZOOKEEPER):
                self.after(0.2, write)
                return
            version = broker.write_isr(action, epoch)
            if version is not None:
                self.say(f"broker {broker.number} stores in sync {action.isr}: {action.why}")
                self.after(self._latency(), lambda: written(version))

        def written(version: int) -> None:
            if self.is_cut(broker.number, ZOOKEEPER):
                self.after(0.2, lambda: written(version))
            elif broker.up and broker.life == life:
                broker.isr_written(action, epoch, version)

        self.after(self._latency(), write)

    def decide(self, controller: Controller, target: int, decision: Decision) -> None:
        """Send LeaderAndIsr until it is answered."""
        broker = self.brokers[target]

        def send() -> None:
            source = controller.broker
            if not source.up or source.life != controller.life:
                return
            if broker.up and not self.is_cut(source.number, target):
                self.say(f"controller {source.number} tells broker {target}: {decision.state}")
                broker.decided(decision)
                return
            self.after(RETRY_S, send)

        # Most decisions arrive at once, some very late: by then there may be another controller, or another life.
        late = self.random.uniform(0.5, 4.0) if self.random.random() < 0.05 else 0.0
        self.after(self._latency() * 3 + late, send)

    # -- sessions -----------------------------------------------------------------------------------------------

    def _start(self, broker: Broker) -> None:
        broker.start()
        self._register(broker)

    def _register(self, broker: Broker) -> None:
        if self.is_cut(broker.number, ZOOKEEPER):
            life = broker.life

            def again() -> None:
                if broker.up and broker.life == life:
                    self._register(broker)

            self.after(0.2, again)
            return
        broker.broker_epoch = self.registry.register(broker.number)
        self._changed()

    def _lose_session(self, broker: Broker, life: int, epoch: int) -> None:
        if self.registry.live.get(broker.number) != epoch:
            return
        if broker.up and broker.life == life and not self.is_cut(broker.number, ZOOKEEPER):
            return
        self.say(f"the session of broker {broker.number} ends")
        self.registry.expire(broker.number)
        self._changed()

    def _changed(self) -> None:
        """Who is alive has changed: the controller looks, or a new one is chosen."""

        def look() -> None:
            for number in self.random.sample(sorted(self.registry.live), len(self.registry.live)):
                broker = self.brokers[number]
                if broker.up and not self.is_cut(number, ZOOKEEPER):
                    epoch = self.registry.run_for_controller(number)
                    if epoch is not None:
                        self.say(f"broker {number} is controller, epoch {epoch}")
                        self._controllers.append(Controller(self, broker, epoch))
            for controller in self._controllers:
                if not self.is_cut(controller.broker.number, ZOOKEEPER):
                    controller.look()

        self.after(self._latency() * 2, look)

    # -- faults -------------------------------------------------------------------------------------------------

    def _produce(self) -> None:
        state = self.registry.state
        if state is not None and state.leader >= 0:
            self._value += 1
            value, targets = self._value, [self.brokers[state.leader]]
            # Now and then an old leader is asked as well: a client whose metadata is out of date.
            if self.random.random() < 0.3:
                targets = [broker for broker in self.brokers if broker.leader is not None] or targets
            target = self.random.choice(targets)
            self.after(self._latency(), lambda: target.produce(value))
        if self.now < FAULTS_UNTIL_S + 2:
            self.after(PRODUCE_EVERY_S * self.random.uniform(0.5, 1.5), self._produce)

    def _do(self, fault: Fault) -> None:
        broker = self.brokers[fault.broker]
        if not broker.up:
            return
        self.say(f"fault {fault}")
        if fault.kind in ("crash", "power", "bounce"):
            self._crash(broker, fault)
            return
        others = [one for one in (*self.replicas, ZOOKEEPER) if one != fault.broker]
        ends = {"cut": [fault.other], "cut zookeeper": [ZOOKEEPER], "isolate": others}[fault.kind]
        links = {frozenset((fault.broker, end)) for end in ends}
        self._cut |= links
        if ZOOKEEPER in ends:
            life, epoch = broker.life, broker.broker_epoch
            self.after(SESSION_S, lambda: self._lose_session(broker, life, epoch))
        self.after(fault.lasts, lambda: self._heal(broker, links))

    def _heal(self, broker: Broker, links: set[frozenset[int]]) -> None:
        self._cut -= links
        if broker.up and broker.number not in self.registry.live:
            self._register(broker)
        else:
            self._changed()

    def _crash(self, broker: Broker, fault: Fault) -> None:
        alone = self.registry.state is not None and len(self.registry.state.isr) == 1
        power = fault.kind == "power" and not alone and all(one.up for one in self.brokers) and not self._cut
        broker.crash(power=power)
        for other in self.brokers:
            if other.up and not self.is_cut(other.number, broker.number):
                other.hung_up(broker.number)
        life, epoch = broker.life, broker.broker_epoch
        self.after(SESSION_S, lambda: self._lose_session(broker, life, epoch))
        self.after(fault.lasts, lambda: self._start(broker))
