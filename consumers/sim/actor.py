"""One consumer in the simulated world: the real ``Member.life`` driven by virtual time.

What is simulated is only what surrounds it: the network between it and the registry, its application (which takes
messages in small batches), and its misfortunes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from consumers.algorithm1.editions import EDITIONS
from consumers.algorithm1.member import Member
from consumers.algorithm1.steps import NewSession, Owned, Progress, Start, Step, Steps, Stop, Wait
from consumers.metrics import ConsumerCounters
from consumers.sim.kafka07 import Kafka07
from consumers.sim.scenario import SESSION_S
from kafka2011.events import Journal
from zk_registry.consumers import Subscription
from zk_registry.operations import ConnectionLoss, RegistryError

if TYPE_CHECKING:
    from consumers.sim.world import World

DELIVERY_S = 0.2


class SimulatedMember(Protocol):
    """What the simulator needs of a member, whoever wrote it."""

    closing: bool
    dirty: bool

    @property
    def counters(self) -> ConsumerCounters: ...

    def noticed(self, path: str) -> bool:
        """A watch fired; whether a wait ends."""

    def life(self) -> Steps[None]:
        """Live until ``closing``."""


MakeMember = Callable[["Actor"], SimulatedMember]


class Actor:
    """A consumer process. Thread: one, the simulator's."""

    def __init__(self, world: World, name: str, edition: str) -> None:
        self.world, self.name, self.edition = world, name, edition
        self.session = world.zookeeper.session(timeout_s=SESSION_S)
        self._random = Random(f"{world.scenario.seed}/{name}")
        self._births = 0
        self.member: Member | Kafka07 | SimulatedMember
        if world.make_member is not None:
            self.member = world.make_member(self)
        else:
            self.member = self._kafka07() if edition == "0.7" else self._own(edition)
        self._careful = EDITIONS[edition].guards if edition in EDITIONS else edition != "0.7"
        self.reading: dict[Owned, int] = {}
        """The next message of each partition being delivered."""
        self._in_hand: set[Owned] = set()
        """Partitions whose last delivered message is not finished yet."""
        self.alive = True
        self.left = False
        self.frozen_until = 0.0
        self.cut_until = 0.0
        self.away_since = math.inf
        """When it was first paused or cut off: from then on what it holds says nothing of what it reads."""
        self._doubts = False
        """Away for so long that the session may be over: delivers nothing until that is known."""
        self._life = self.member.life()
        self._timer = 0
        self._sleeping = False
        world.at(world.latency(), lambda: self._go(None))
        world.at(self._random.uniform(0, DELIVERY_S), self._deliver)

    def _own(self, edition: str) -> Member:
        return Member(
            self.world.group,
            Subscription.fixed({self.world.topic: 1}),
            new_id=self._new_id,
            session_id=lambda: self.session.session_id,
            clock=self.world.clock,
            journal=Journal(clock=self.world.clock, keep=1),
            random=self._random,
            edition=EDITIONS[edition],
            autocommit_s=self.world.scenario.commit_s,
            patience_s=3 * SESSION_S,
        )

    def _kafka07(self) -> Kafka07:
        return Kafka07(
            self.world.group,
            self.world.topic,
            self._new_id(),
            session_id=lambda: self.session.session_id,
            clock=self.world.clock,
            random=self._random,
            autocommit_s=self.world.scenario.commit_s,
        )

    def _new_id(self) -> str:
        self._births += 1
        return f"{self.world.group}_{self.name}" + (f"-{self._births}" if self._births > 1 else "")

    # -- running the real code ------------------------------------------------------------------------------------

    def _go(self, answer: Any, error: RegistryError | None = None) -> None:
        """Give the member its answer, perform its next step."""
        if not self.alive or self._frozen(lambda: self._go(answer, error)):
            return
        while True:
            try:
                step = self._life.throw(error) if error is not None else self._life.send(answer)
            except StopIteration:
                self._gone()
                return
            error = None
            match step:
                case Stop(partitions):
                    answer = self._stop(partitions)
                case Progress():
                    answer = {owned: at - (owned in self._in_hand) for owned, at in self.reading.items()}
                case Start(claims):
                    for claim in claims:
                        self.reading[claim.owned] = claim.offset or 0
                        self._in_hand.discard(claim.owned)
                        self.world.began(self, claim.owned)
                    answer = None
                case Wait(seconds):
                    self._sleep(seconds)
                    return
                case NewSession():
                    self.world.at(self.world.latency(), self._new_session)
                    return
                case _:
                    self._perform(step)
                    return

    def _perform(self, step: Step) -> None:
        """Send an operation on its way: it happens at the server a moment later, the answer comes later still."""
        self.world.n_operations += 1
        self.world.at(self.world.latency(), lambda: self._at_server(step))

    def _at_server(self, step: Any) -> None:
        if self.cut_until > self.world.now:
            # A request into a cut line is given up when the session would have timed out.
            self.world.at(SESSION_S, lambda: self._go(None, ConnectionLoss("/", "no answer")))
            return
        try:
            answer = self.world.perform(self, step, self._watched)
            self.world.note(self.name, step, answer)
            self.world.at(self.world.latency(), lambda: self._go(answer))
        except RegistryError as error:
            failure = error
            self.world.note(self.name, step, failure)
            self.world.at(self.world.latency(), lambda: self._go(None, failure))

    def _watched(self, path: str) -> None:
        if self.member.noticed(path):
            self.wake()

    def wake(self) -> None:
        """Something changed: end a wait."""
        if self._sleeping and self.alive:
            self._sleeping = False
            self._timer += 1
            self.world.at(0.0, lambda: self._go(None))

    def _sleep(self, seconds: float) -> None:
        self._sleeping = True
        self._timer += 1
        mine = self._timer

        def over() -> None:
            if self._sleeping and self._timer == mine:
                self._sleeping = False
                self._go(None)

        self.world.at(seconds, over)

    def _new_session(self) -> None:
        if self.alive and not self._frozen(self._new_session):
            if self.cut_until > self.world.now:
                self.world.at(0.1, self._new_session)
                return
            self.session.resume()
            self._doubts = False
            self._go(None)

    # -- the application ------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if not self.alive or self.left or self._frozen(self._deliver):
            return
        if not self._doubts or not self._careful:
            for owned, at in self.reading.items():
                upto = min(self.world.log_end(owned), at + 5)
                if upto > at:
                    self.world.delivered(owned, at, upto)
                    self.reading[owned] = upto
                    self._in_hand.add(owned)
                else:
                    self._in_hand.discard(owned)
        self.world.at(DELIVERY_S, self._deliver)

    def _stop(self, partitions: frozenset[Owned] | None) -> dict[Owned, int]:
        stopped = [owned for owned in self.reading if partitions is None or owned in partitions]
        for owned in stopped:
            self.world.ended(self, owned)
        return {owned: self.reading.pop(owned) for owned in stopped}

    # -- misfortunes ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Close in peace."""
        self.member.closing = True
        self.wake()

    def kill(self) -> None:
        """kill -9: the server notices when the session times out."""
        self.alive = False
        for owned in list(self.reading):
            self.world.ended(self, owned)
        self._silent()

    def pause(self, seconds: float) -> None:
        """SIGSTOP: nothing runs, no heartbeat is sent."""
        self.frozen_until = self.world.now + seconds
        self.away_since = min(self.away_since, self.world.now)
        self._doubts = seconds > SESSION_S / 3  # it knows, and asks before it goes on (``pulse``)
        self._silent()
        self.world.at(seconds, lambda: self._heard(self.frozen_until))

    def cut(self, seconds: float) -> None:
        """The line to the registry is dead; the brokers can still be read."""
        self.cut_until = self.world.now + seconds
        self.away_since = min(self.away_since, self.world.now)
        # A line that is reset is noticed at once, a mute one when two thirds of the session are gone (``worker``).
        self.world.at(self._random.uniform(0.0, SESSION_S * 2 / 3) + SESSION_S / 6, self._misses)
        self._silent()
        self.world.at(seconds, lambda: self._heard(self.cut_until))

    def _silent(self) -> None:
        self.world.zookeeper.hear(self.session.session_id, False)
        # A little later than the timeout: the server expires sessions in ticks, and never early.
        self.world.at(SESSION_S + 0.01, self.world.zookeeper.tick)

    def _heard(self, until: float) -> None:
        if not self.alive or until > self.world.now + 1e-9:
            return
        if self.world.zookeeper.is_living(self.session.session_id):
            self.world.zookeeper.hear(self.session.session_id, True)
            if self._doubts:
                self.world.at(self.world.latency() + self.world.latency(), self._trusts)
        else:
            if self.world.scenario.quick_renewal:
                self.session.resume()
            # The client library learns it at the next heartbeat; until then this is a zombie.
            self.world.at(self._random.uniform(0.05, 0.5), self._zombie_learns)

    def _misses(self) -> None:
        self._doubts = self._doubts or self.cut_until > self.world.now

    def _trusts(self) -> None:
        self._doubts = self.frozen_until > self.world.now or self.cut_until > self.world.now

    def _zombie_learns(self) -> None:
        if self.alive and not self._frozen(self._zombie_learns):
            self.member.dirty = True
            self.wake()

    def _frozen(self, later: Any) -> bool:
        if self.frozen_until > self.world.now:
            self.world.at(self.frozen_until - self.world.now, later)
            return True
        return False

    def _gone(self) -> None:
        self.left = True
        self.alive = False
        self.session.close()
