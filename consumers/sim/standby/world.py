"""Time, links, sessions and faults of one run: three members of one broker, one ZooKeeper."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from consumers.sim.replication.checker import Violation
from consumers.sim.standby.checker import Checker
from consumers.sim.standby.member import FLUSH_EVERY_S, FOLLOW_EVERY_S, RENEW_EVERY_S, TICK_EVERY_S, SimMember
from consumers.sim.standby.registry import SESSION_S, Registry
from consumers.sim.standby.rules import MUTANTS, TODAY, Rules, name_of
from kafka2011.wire import encode_set
from since2011.standby.in_sync import MEMBERS, InSync

FAULTS_UNTIL_S, SETTLED_AT_S = 14.0, 26.0
PRODUCE_EVERY_S = 0.1
ZOOKEEPER = "zookeeper"
_KINDS = ("crash", "crash", "bounce", "pause", "cut", "cut zookeeper", "isolate", "disk", "disk")


class Fault(NamedTuple):
    """One fault: when, what, to whom, for how long."""

    at: float
    kind: str
    member: str
    other: str
    lasts: float


def random_faults(seed: int) -> list[Fault]:
    """The faults of a run."""
    chance = random.Random(seed)
    faults = []
    at = chance.uniform(0.8, 2)
    while at < FAULTS_UNTIL_S:
        member = chance.choice(MEMBERS)
        other = chance.choice([one for one in MEMBERS if one != member])
        faults.append(Fault(at, chance.choice(_KINDS), member, other, chance.uniform(0.1, 4.0)))
        at += chance.expovariate(1 / 1.2)
    return faults


@dataclass
class World:
    """One run: a seed, the faults drawn from it, and the rules the members follow. It is the clock, too."""

    seed: int
    rules: Rules = TODAY
    lines: list[str] | None = None
    n_partitions: int = 2
    session_s: float = SESSION_S
    now: float = 0.0
    registry: Registry = field(default_factory=Registry)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.min_insync = 1 + self.seed % 2
        self.checker = Checker(self.registry)
        self.faults = random_faults(self.seed)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._n = self._value = 0
        self._cut: set[frozenset[str]] = set()
        self._paused: dict[str, float] = {}
        self.members = [SimMember(self, name) for name in MEMBERS]

    # -- time: this is the clock of the leases ----------------------------------------------------------------------

    def monotonic(self) -> float:
        """As ``Clock``."""
        return self.now

    def wall_ms(self) -> int:
        """As ``Clock``."""
        return int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        """As ``Clock``; nobody sleeps here."""

    def after(self, delay: float, act: Callable[[], None]) -> None:
        """Do something later."""
        self._n += 1
        heapq.heappush(self._queue, (self.now + delay, self._n, act))

    def to(self, member: SimMember, delay: float, act: Callable[[], None]) -> None:
        """Let something happen to one life of a member: when it goes on, if it stands still."""
        life = member.life

        def arrive() -> None:
            if not member.up or member.life != life:
                return
            still = self._paused.get(member.name, 0.0) - self.now
            if still > 0:
                self.after(still, arrive)
            else:
                act()

        self.after(delay, arrive)

    def every(self, member: SimMember, pace: float, act: Callable[[], None]) -> None:
        """Do something again and again for as long as this life lasts."""

        def again() -> None:
            act()
            self.to(member, pace * self.random.uniform(0.7, 1.3), again)

        self.to(member, pace * self.random.random(), again)

    def say(self, text: str) -> None:
        """One line of the transcript."""
        if self.lines is not None:
            self.lines.append(f"{self.now:7.3f}  {text}")

    def latency(self) -> float:
        """How long a message takes."""
        return self.random.expovariate(1 / 0.006) + 0.001

    # -- a run --------------------------------------------------------------------------------------------------

    def run(self) -> Violation | None:
        """Run to the end; the promise that was broken, if any."""
        for member in self.members:
            self._start(member)
        self.after(0.2, self._produce)
        self.after(0.05, self._end_sessions)
        for fault in self.faults:
            self.after(fault.at, lambda fault=fault: self._strike(fault))  # type: ignore[misc]
        try:
            while self._queue and self.now < SETTLED_AT_S:
                self.now, _, act = heapq.heappop(self._queue)
                act()
                if self._n % 128 == 0:
                    self.checker.alike(self.members)
                    self.checker.forward()
            self._end()
        except Violation as violation:
            self.say(f"VIOLATION {violation}")
            return violation
        return None

    def _end(self) -> None:
        leader = next((one for one in self.members if one.name == self.registry.leader), None)
        if leader is None or not leader.serves:
            raise Violation("whole", f"nobody leads; {self.registry.in_sync}")
        self.checker.at_the_end(leader, self.members)

    def _start(self, member: SimMember) -> None:
        member.up, member.life = True, member.life + 1
        member.term += 1  # the sessions of its former lives are nobody's any more
        member.begin_again()
        self._enter(member)
        self.every(member, FOLLOW_EVERY_S, lambda: self._follow(member))
        self.every(member, FLUSH_EVERY_S, member.flush)
        self.every(member, TICK_EVERY_S, member.tick)
        self.every(member, RENEW_EVERY_S, lambda: self._renew(member))
        self.every(member, 1.0, member.retain)

    # -- ZooKeeper ----------------------------------------------------------------------------------------------

    def _reaches(self, one: str, other: str) -> bool:
        return frozenset((one, other)) not in self._cut

    def _enter(self, member: SimMember) -> None:
        if self._reaches(member.name, ZOOKEEPER):
            member.term += 1
            self.registry.enter(member.session, member.disk, self.now)
            member.lease.begin(member.term)

    def _renew(self, member: SimMember) -> None:
        asked_at, term = self.now, member.term
        if not self._reaches(member.name, ZOOKEEPER):
            return
        if member.session not in self.registry.heard:
            # It hears only now that its session has ended.
            if member.leadership is not None:
                self.lose(member, "its session has ended")
            self._enter(member)
            return
        self.registry.heard[member.session] = self.now
        self.to(member, self.latency(), lambda: member.lease.heard(term, asked_at))

    def _end_sessions(self) -> None:
        for name, _ in self.registry.end_sessions(self.now):
            self.say(f"the session of {name} ends")
        self.after(0.05, self._end_sessions)

    def lose(self, member: SimMember, why: str) -> None:
        """A leader stops, closes its session, and begins again as a follower."""
        self.say(f"{member.name} stops leading: {why}")
        if self._reaches(member.name, ZOOKEEPER):
            self.registry.expire(member.session)
        member.term += 1
        member.begin_again()
        self._enter(member)

    def propose(self, member: SimMember, wanted: InSync, why: str) -> None:
        """Let a leader store an in-sync set, as soon as ZooKeeper can be reached."""
        epoch = member.epoch

        def write() -> None:
            if member.epoch != epoch or member.leadership is None:
                return
            if not self._reaches(member.name, ZOOKEEPER):
                self.to(member, 0.2, write)
                return
            version = self.registry.store(wanted)
            self.say(f"{member.name} stores in sync {sorted(wanted.disks)}: {why}")
            self.to(member, self.latency(), lambda: member.stored(epoch, version))

        self.to(member, self.latency(), write)

    # -- members ------------------------------------------------------------------------------------------------

    def _follow(self, member: SimMember) -> None:
        if member.leadership is not None or not self._reaches(member.name, ZOOKEEPER):
            return
        leader = next((one for one in self.members if one.name == self.registry.leader), None)
        if leader is None:
            self._run_for(member)
        elif leader is not member:
            request = member.request(leader)

            def arrive() -> None:
                if self._reaches(member.name, leader.name):
                    answer = leader.answer(request)
                    self.to(member, self.latency(), lambda: member.answered(answer))

            self.to(leader, self.latency(), arrive)

    def _run_for(self, member: SimMember) -> None:
        wanted = member.candidacy()
        if wanted is None:
            return
        member.flush()
        asked_at, term = self.now, member.term

        def write() -> None:
            if member.leadership is not None or not self._reaches(member.name, ZOOKEEPER) or member.term != term:
                return
            if member.session in self.registry.heard:
                self.registry.heard[member.session] = self.now  # a request is a sign of life
            won = self.registry.run(member.session, wanted)
            if won is not None:
                self.say(f"{member.name} is elected, epoch {won[0]}, in sync {sorted(wanted.disks)}")
                member.lease.heard(term, asked_at)
                member.lead(*won, wanted)

        # Most arrive at once, some very late: by then the set may be another.
        late = self.random.uniform(0.5, 4.0) if self.random.random() < 0.1 else 0.0
        self.to(member, self.latency() + late, write)

    def _produce(self) -> None:
        # Now and then an old leader is asked: a client that has not heard yet.
        asked = [one for one in self.members if one.leadership is not None]
        if asked:
            self._value += 1
            payload = f"{self._value:06}".encode() * self.random.choice((1, 2, 30))
            member, partition = self.random.choice(asked), self.random.randrange(self.n_partitions)
            data = encode_set([payload])
            self.to(member, self.latency(), lambda: member.produce(partition, payload, data))
        if self.now < FAULTS_UNTIL_S + 2:
            self.after(PRODUCE_EVERY_S * self.random.uniform(0.5, 1.5), self._produce)

    # -- faults -------------------------------------------------------------------------------------------------

    def _strike(self, fault: Fault) -> None:
        member = self.members[MEMBERS.index(fault.member)]
        if not member.up:
            return
        if fault.kind == "disk" and not self._others_hold_everything(member):
            return
        self.say(f"fault {fault.kind} of {fault.member} for {fault.lasts:.2f} s")
        if fault.kind == "pause":
            self._paused[member.name] = self.now + fault.lasts
        elif fault.kind in ("crash", "bounce", "disk"):
            self._crash(member, SESSION_S + fault.lasts if fault.kind == "crash" else fault.lasts, fault.kind == "disk")
        else:
            others = [one for one in (*MEMBERS, ZOOKEEPER) if one != fault.member]
            ends = {"cut": [fault.other], "cut zookeeper": [ZOOKEEPER], "isolate": others}[fault.kind]
            links = {frozenset((fault.member, end)) for end in ends}
            self._cut |= links
            self.after(fault.lasts, lambda: self._cut.difference_update(links))

    def _others_hold_everything(self, member: SimMember) -> bool:
        """Whether a disk may go: another in sync is there. What the last copy held nobody can keep."""
        in_sync = self.registry.in_sync
        alive = [one for one in self.members if one is not member and one.up and one.name not in self._paused]
        return in_sync is not None and not self._cut and any(
            in_sync.disks.get(one.name) == one.disk for one in alive
        ) and len(alive) == len(MEMBERS) - 1

    def _crash(self, member: SimMember, lasts: float, disk: bool) -> None:
        member.up, member.life = False, member.life + 1
        member.begin_again()
        for other in self.members:
            if other.up and self._reaches(other.name, member.name):
                self.to(other, 0.0, lambda other=other: other.hung_up(member.name))  # type: ignore[misc]
        if disk:
            member.new_disk()
        self.after(lasts, lambda: self._start(member))


def many(n_runs: int, first_seed: int = 0, rules: Rules = TODAY) -> tuple[int, dict[int, str]]:
    """Run seeds one after the other: how much was acknowledged, and which seeds broke what."""
    n_acked, broken = 0, {}
    for seed in range(first_seed, first_seed + n_runs):
        world = World(seed, rules)
        violation = world.run()
        n_acked += len(world.checker.acked)
        if violation is not None:
            broken[seed] = str(violation)
    return n_acked, broken


def first_failure(rules: Rules, n_seeds: int = 1_000) -> int | None:
    """The first seed with which ``rules`` break a promise."""
    return next((seed for seed in range(n_seeds) if World(seed, rules).run() is not None), None)


def rules_called(name: str) -> Rules:
    """A mutant by its name. Raises KeyError."""
    return {name_of(rules): rules for rules in MUTANTS}[name]
