"""A student's consumers in the simulated world: steps translated, runs judged, replayed and made smaller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from classroom.labs.lab import Bench, Failed
from classroom.labs.sandbox import Handle, Sandbox, StudentError
from consumers.algorithm1 import steps as real
from consumers.algorithm1.assign import ThreadId
from consumers.metrics import ConsumerCounters
from consumers.sim.actor import Actor
from consumers.sim.picture import draw
from consumers.sim.scenario import Fault, Scenario
from consumers.sim.verdict import Lane, Verdict
from consumers.sim.world import World
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry import operations as ops

_NOWHERE = BrokerAddress(0, "h", 9092)
_MOST_STEPS = 60_000
"""Steps of one run; a consumer that never waits is stopped there."""
_SMALLER_RUNS = 10


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the student's, as it came."""

    kind: str
    fields: dict[str, Any]


def _step(kind: str) -> Any:
    return lambda **fields: Step(kind, fields)


KINDS = ("Session", "Progress", "Stop", "Start", "Wait", "NewSession")
OPERATIONS = ("Children", "Get", "Exists", "Create", "Set", "Delete", "DeleteIfMine", "Multi")
MADE = {kind: _step(kind) for kind in (*KINDS, *OPERATIONS)}


class StudentMember:
    """A consumer of the student's, with the face that the simulator knows."""

    def __init__(self, sandbox: Sandbox, actor: Actor) -> None:
        self.counters = ConsumerCounters()
        self.closing = self.dirty = False
        self._sandbox, self._actor = sandbox, actor
        world = actor.world
        seed = world.scenario.seed * 100 + len(world.actors)
        consumer: Handle = sandbox.fresh("Consumer", world.group, f"g_{actor.name}", world.topic, seed)
        self._life: Handle = consumer.life()
        self._n_steps = 0

    def noticed(self, path: str) -> bool:
        """A watch fired."""
        self.dirty = True
        return True

    def life(self) -> real.Steps[None]:
        """Let the student's generator live: its steps out, their answers in."""
        answer: Any = None
        error: tuple[str, Sequence[Any]] | None = None
        while True:
            self._n_steps += 1
            if self._n_steps > _MOST_STEPS:
                raise Failed(f"{self._actor.name} has taken {_MOST_STEPS} steps; does it ever wait?")
            goes_on, step = self._sandbox.resume(self._life, answer, error)
            if not goes_on:
                return
            answer = error = None
            try:
                answer = yield from self._taken(step)
            except ops.RegistryError as refused:
                error = type(refused).__name__, [refused.path]

    def _taken(self, step: Any) -> real.Steps[Any]:
        if not isinstance(step, Step):
            raise Failed(f"{self._actor.name} yielded {step!r}, which is no step")
        fields = step.fields
        match step.kind:
            case "Session":
                return self._actor.session.session_id
            case "Progress":
                return _named((yield real.Progress()))
            case "Stop":
                return _named((yield real.Stop()))
            case "Start":
                yield real.Start(tuple(self._claim(name, offset) for name, offset in fields["offsets"].items()))
                return None
            case "NewSession":
                yield real.NewSession()
                return None
            case "Wait":
                return (yield from self._waited(float(fields["seconds"])))
        answer = yield operation(step)
        if step.kind == "Get":
            return [answer.value, answer.ephemeral_owner]
        if step.kind == "Exists":
            return None if answer is None else answer.ephemeral_owner
        return list(answer) if step.kind == "Children" else answer if step.kind == "DeleteIfMine" else None

    def _waited(self, seconds: float) -> real.Steps[str]:
        if not (self.dirty or self.closing):
            yield real.Wait(max(0.0, min(seconds, 3600.0)), "asked for")
        if self.closing:
            return "leave"
        if self.dirty:
            self.dirty = False
            return "changed"
        return "time"

    def _claim(self, name: str, offset: Any) -> real.Claim:
        owned = real.Owned(self._actor.world.topic, _partition(name))
        return real.Claim(owned, ThreadId(self._actor.name, 0), _NOWHERE, int(offset))


def operation(step: Step) -> Any:
    """The registry operation that a step of the student's stands for."""
    if step.kind not in OPERATIONS:
        raise Failed(f"{step.kind} cannot be asked of the registry")
    fields = dict(step.fields)
    if step.kind == "Multi":
        return ops.Multi(tuple(operation(one) for one in fields["operations"]))
    if step.kind == "Create":
        fields["make_parents"] = True
    return getattr(ops, step.kind)(**fields)


def _partition(name: str) -> BrokerPartition:
    broker, _, number = str(name).partition("-")
    return BrokerPartition(int(broker), int(number))


def _named(positions: real.Positions) -> dict[str, int]:
    return {str(owned.partition): offset for owned, offset in positions.items()}


class Run:
    """One run: a scenario, what became of it, and how to show it."""

    def __init__(self, bench: Bench, scenario: Scenario, *, transcript: bool = False) -> None:
        self.scenario = scenario
        self.error = ""
        with bench.student() as sandbox:
            self._world = World(scenario, transcript=transcript, members=lambda actor: StudentMember(sandbox, actor))
            try:
                self.verdict: Verdict | None = self._world.run()
            except (StudentError, Failed) as error:
                self.verdict, self.error = None, str(error)

    def wrong(self, *, one_reader: bool = False) -> str:
        """What is wrong with it, in words; empty if nothing is."""
        if self.verdict is None:
            return self.error
        if self.verdict.failed or (one_reader and self.verdict.doubled):
            return str(self.verdict).partition(": ")[2].partition(";")[0]
        return ""

    def transcript(self) -> str:
        """Every operation, in order."""
        faults = [f"happens: {fault}" for fault in self.scenario.faults]
        return "\n".join([*faults, *self._world.lines, self.error]) + "\n"


def judged(bench: Bench, scenario: Scenario, *, one_reader: bool = False) -> Verdict:
    """Run it; if it fails, make it smaller as long as it fails, keep transcript and picture, and fail the test."""
    run = Run(bench, scenario)
    why = run.wrong(one_reader=one_reader)
    if not why:
        assert run.verdict is not None
        return run.verdict
    smallest = _smallest(bench, scenario, one_reader)
    shown = Run(bench, smallest, transcript=True)
    name = f"{bench.test.name}-{scenario.seed}"
    bench.replays[f"{name}.txt"] = shown.transcript()
    if shown.verdict is not None:
        bench.replays[f"{name}.svg"] = draw(smallest, shown.verdict)
    faults = ", ".join(fault.kind for fault in smallest.faults) or "no fault at all"
    raise Failed(
        f"run {scenario.seed}: {shown.wrong(one_reader=one_reader) or why}; it takes {smallest.n_consumers} consumers, "
        f"{smallest.n_partitions} partitions and {faults}; see replays/{name}.txt and .svg"
    )


def _smallest(bench: Bench, failing: Scenario, one_reader: bool) -> Scenario:
    """Leave out faults, then consumers, one at a time, as long as the run still fails."""
    tries = _SMALLER_RUNS
    smaller = True
    while smaller:
        smaller = False
        candidates = [failing.without(fault) for fault in failing.faults]
        if failing.n_consumers > 1:
            candidates.append(replace(failing, n_consumers=failing.n_consumers - 1))
        for candidate in candidates:
            if tries == 0:
                return failing
            tries -= 1
            if Run(bench, candidate).wrong(one_reader=one_reader):
                failing, smaller = candidate, True
                break
    return failing


def drawn(seed: int, kinds: tuple[str, ...], lost_reply_rate: float = 0.0) -> Scenario:
    """A run of a seed, about half as long as those of ``kafka2011 sim``: faults, then peace."""
    scenario = Scenario.from_seed(seed, "student", lost_reply_rate=lost_reply_rate, kinds=kinds)
    return replace(scenario, faults=tuple(f for f in scenario.faults if f.at < 14.0), duration_s=34.0)


def plain(n_consumers: int, n_partitions: int, *faults: Fault, seed: int = 1) -> Scenario:
    """A run with just these faults."""
    last = max((fault.at for fault in faults), default=0.0)
    return Scenario(seed, "student", n_consumers, n_partitions, faults, duration_s=last + 25.0)


def without_reader_s(lanes: Sequence[Lane], duration_s: float) -> float:
    """Seconds in which a partition that had a reader before had none, over all partitions."""
    total = 0.0
    for partition in {lane.partition for lane in lanes}:
        until = math.inf
        for lane in sorted((one for one in lanes if one.partition == partition), key=lambda one: one.start):
            total += max(0.0, lane.start - until)
            until = max(lane.end, until) if until != math.inf else lane.end
        total += max(0.0, duration_s - until)
    return total


def moved(lanes: Sequence[Lane]) -> int:
    """How often a partition went from one member to another."""
    changes = 0
    for partition in {lane.partition for lane in lanes}:
        members = [one.member for one in sorted(lanes, key=lambda one: one.start) if one.partition == partition]
        changes += sum(1 for before, after in pairwise(members) if before != after)
    return changes
