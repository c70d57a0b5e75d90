"""The world: virtual time, messages that are lost or late, coordinators that crash or are replaced, zombies.

What may be late without end is a record on its way to a leader (KIP-890). Requests to a coordinator, offsets and
markers arrive soon or never: that an older one of the same epoch does not come behind a newer one is what a connection
promises, and nothing in them would tell (in Kafka 4, by KIP-890's second part, the epoch of every transaction does).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from consumers.sim.transactions.instance import (
    LOST,
    OUTPUTS,
    Dies,
    Instance,
    Position,
    Program,
    Request,
    ToCoordinator,
    ToLeader,
)
from consumers.sim.transactions.node import Node, StateRecord
from consumers.sim.transactions.partition import INPUT, OFFSETS, SimulatedPartition
from since2011.transactions.events import Answer
from since2011.transactions.transaction import State
from since2011.wire.error_codes import ErrorCode

N_INPUTS = 24
STORM_MS, END_MS = 6_000, 60_000
ANSWER_MS, PATIENCE_MS, TICK_MS = 40, 100, 250
LATE_MS = (220, 220, 4_000)


@dataclass
class World:
    """One run. Thread: one."""

    seed: int
    lines: list[str] | None = None
    now: int = 0
    n_faults: int = 0
    state_log: list[StateRecord] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    reads: list[list[str]] = field(default_factory=lambda: [[] for _ in OUTPUTS])
    """What a reader of committed records has seen of each output, as it went along."""
    broken: str | None = None

    def __post_init__(self) -> None:
        self.random = Random(f"transactions {self.seed}")
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = self._producer_ids = 0
        self.partitions = {key: SimulatedPartition(key) for key in (*OUTPUTS, OFFSETS)}
        self.leader = Node(self, 0)

    # Time and chance

    def after(self, ms: int, work: Callable[[], None]) -> None:
        """Do ``work`` later."""
        self._count += 1
        heapq.heappush(self._events, (self.now + ms, self._count, work))

    @property
    def storms(self) -> bool:
        """Whether faults still strike."""
        return self.now < STORM_MS

    def loses(self) -> bool:
        """Whether this message is lost."""
        return self.storms and self.random.random() < 0.06

    def next_producer_id(self) -> int:
        """None twice."""
        self._producer_ids += 1
        return self._producer_ids

    def tell(self, text: str) -> None:
        """A line for whoever reads the run."""
        if self.lines is not None:
            self.lines.append(f"{self.now:6} {text}")

    # A run

    def run(self) -> None:
        """Let it storm, then let one instance finish and everything come to rest."""
        self._start()
        for _ in range(self.random.randint(2, 8)):
            self.after(self.random.randint(50, STORM_MS), self._strike)
        self.after(STORM_MS + 10, self._finish)
        self._tick()
        while self._events and self.now < END_MS:
            self.now, _, work = heapq.heappop(self._events)
            work()

    def _tick(self) -> None:
        self.leader.tick()
        self._look()
        if self.now < END_MS - 10_000:
            self.after(TICK_MS, self._tick)

    def _look(self) -> None:
        """A reader goes on; what it has seen must stay what it was."""
        for seen, key in zip(self.reads, OUTPUTS, strict=True):
            found = [f"{entry.label}:{entry.value}" for entry in self.partitions[key].read(committed=True)]
            if found[: len(seen)] != seen and self.broken is None:
                self.broken = f"{key}: a reader had seen {seen}, and now that is {found[: len(seen)]}"
            seen[:] = found

    # Instances

    def _start(self, *, always_commits: bool = False) -> None:
        instance = Instance(len(self.instances), self.random, N_INPUTS, always_commits)
        self.instances.append(instance)
        self.tell(f"instance {instance.number} starts")
        program = instance.run()
        self._next(instance, program, None)

    def _finish(self) -> None:
        if not all(each.dead for each in self.instances):
            self.tell("the last instance takes over")
        self._start(always_commits=True)

    def _next(self, instance: Instance, program: Program, answer: Answer | None) -> None:
        if instance.dead:
            return
        try:
            request = next(program) if answer is None else program.send(answer)
        except StopIteration:
            instance.dead = True
            return
        except Dies as reason:
            instance.dead = True
            self.tell(f"instance {instance.number} ends: {reason}")
            if self.storms:
                self.after(self.random.randint(10, 300), self._start)
            elif all(each.dead for each in self.instances):
                # Two that fenced each other: whoever watches over them starts one more.
                self.after(200, lambda: self._start(always_commits=True))
            return
        self._send(request, lambda found: self._next(instance, program, found))

    def _send(self, request: Request, then: Callable[[Answer], None]) -> None:
        """Carry a request; ``then`` is called once, with the answer or with LOST."""
        over: list[bool] = []

        def answered(answer: Answer) -> None:
            if not over:
                over.append(True)
                self.after(20 if answer.error else 1, lambda: then(answer))

        def reply(answer: Answer) -> None:
            if not self.loses():
                self.after(self.random.randint(1, 10), lambda: answered(answer))

        late = self._may_be_late(request) and self.storms and self.random.random() < 0.04
        if late or not self.loses():
            latest = self.random.choice(LATE_MS)
            delay = self.random.randint(PATIENCE_MS, latest) if late else self.random.randint(1, ANSWER_MS)
            self.after(delay, lambda: self._arrive(request, reply))
        self.after(PATIENCE_MS, lambda: answered(LOST))

    @staticmethod
    def _may_be_late(request: Request) -> bool:
        return isinstance(request, ToLeader) and request.partition != OFFSETS

    def _arrive(self, request: Request, reply: Callable[[Answer], None]) -> None:
        match request:
            case ToCoordinator(make):
                self.leader.ask(make(reply))
            case ToLeader():
                self._produce(request, reply)
            case Position():
                book = self.partitions[OFFSETS].book
                found = book.durable.get(INPUT)
                error = ErrorCode.NONE if book.is_stable(INPUT) else ErrorCode.UNSTABLE_OFFSET_COMMIT
                reply(Answer(None, error, epoch=0 if found is None else found.offset))

    def _produce(self, request: ToLeader, reply: Callable[[Answer], None]) -> None:
        held = self.partitions[request.partition]
        producer, epoch, sequence = request.producer
        if held.producers.is_open(producer):
            reply(Answer(None, held.produce(self.now, request.producer, request.label, request.value, None)))
            return
        ticket = held.producers.begin_verification(producer, epoch, sequence, self.now)

        def verified() -> None:
            error = self.leader.verify(producer, epoch, request.partition)
            # The answer takes its time, too: a marker may come first.
            self.after(self.random.randint(1, 60), lambda: appended(error))

        def appended(error: ErrorCode) -> None:
            if not error:
                error = held.produce(self.now, request.producer, request.label, request.value, ticket)
            reply(Answer(None, ErrorCode.NOT_ENOUGH_REPLICAS if error == ErrorCode.NOT_COORDINATOR else error))

        self.after(self.random.randint(1, 20), verified)

    # Faults

    def _strike(self) -> None:
        self.n_faults += 1
        what = self.random.choice((self._crash, self._replace, self._take_over, self._take_over, self._kill))
        what()

    def _crash(self) -> None:
        """The coordinator's process ends; what it was writing may be there or not."""
        self.tell("the coordinator crashes")
        self.leader.alive = False
        self._elect(self.random.randint(60, 400))

    def _replace(self) -> None:
        """Another broker becomes coordinator; the old one lives on, and hears of it later."""
        self.tell("another coordinator takes over")
        before = self.leader
        before.leads = False
        self.after(self.random.randint(1, 1_500), before.resigns)
        self._elect(self.random.randint(60, 400))

    def _elect(self, ms: int) -> None:
        for number, record in enumerate(self.state_log):
            if not record.committed and self.random.random() < 0.5:
                del self.state_log[number:]
                break
        for record in self.state_log:
            record.committed = True
        epoch = self.leader.epoch + 1

        def elected() -> None:
            if epoch == self.leader.epoch + 1:
                self.leader = Node(self, epoch)

        self.after(ms, elected)

    def _take_over(self) -> None:
        """A new instance starts while the old one lives: a zombie from now on."""
        self._start()

    def _kill(self) -> None:
        """An instance ends without a word; another one starts."""
        living = [each for each in self.instances if not each.dead]
        if living:
            victim = self.random.choice(living)
            victim.dead = True
            self.tell(f"instance {victim.number} is killed")
        self.after(self.random.randint(10, 300), self._start)

    @property
    def rest(self) -> State | None:
        """The state of the transactional id, as the log says."""
        values = [record.value for record in self.state_log if record.value is not None]
        return values[-1].state if values else None
