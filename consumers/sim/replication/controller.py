"""The simulated controller: whoever holds the office, deciding with ``since2011.controller.elections``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.sim.replication.broker import Broker, Decision
from consumers.sim.replication.registry import Refused
from since2011.controller import elections
from since2011.replication.partition_state import NO_LEADER, PartitionState

if TYPE_CHECKING:
    from consumers.sim.replication.world import World

RETRY_S = 0.1


class Controller:
    """One term of office. It goes on acting after it was replaced, until it finds out."""

    def __init__(self, world: World, broker: Broker, epoch: int) -> None:
        self.world, self.broker, self.epoch = world, broker, epoch
        self.life = broker.life
        self.known: dict[int, int] = {}
        self.resigned = False

    def look(self) -> None:
        """Compare who is alive with who was, decide what follows, and tell everybody."""
        if self.resigned or not self.broker.up or self.broker.life != self.life:
            return
        live = dict(self.world.registry.live)
        dead = [one for one, epoch in self.known.items() if live.get(one) != epoch]
        first = not self.known
        self.known = live
        try:
            self._decide(live, dead, first)
        except Refused as refused:
            if str(refused) == "controller moved":
                self.resigned = True
            else:
                self.world.after(RETRY_S, self._again(dead))
            return
        self._tell()

    def _again(self, dead: list[int]) -> object:
        def look() -> None:
            for one in dead:
                self.known.pop(one, None)
            self.known.update(dict.fromkeys(dead, -1))
            self.look()

        return look

    def _decide(self, live: dict[int, int], dead: list[int], first: bool) -> None:
        registry = self.world.registry
        state = registry.state
        if state is None:
            chosen = elections.created(self.world.replicas, live)
            if chosen is not None:
                fresh = PartitionState(chosen.leader, 0, chosen.isr, self.world.replicas, self.epoch)
                registry.write(fresh, -1, self._fence())
            return
        gone = set(dead) | {one for one in state.isr if one not in live and first}
        if state.leader in gone or state.leader == NO_LEADER or state.leader not in live:
            self._elect(state, live, gone)
        for one in sorted(gone):
            state = registry.state
            assert state is not None
            if one in state.isr:
                leader, isr = elections.without(state.isr, state.leader, one)
                if self.world.rules.empty_isr:
                    isr = tuple(member for member in state.isr if member != one)
                if leader != state.leader or isr != state.isr:
                    self._write(state._replace(leader=leader, isr=isr))
        state = registry.state
        if state is not None and state.leader == NO_LEADER:
            self._elect(state, live, set())

    def _elect(self, state: PartitionState, live: dict[int, int], gone: set[int]) -> None:
        alive = [one for one in live if one not in gone]
        chosen = elections.offline(state.replicas, state.isr, alive)
        if chosen is None and self.world.rules.elect_anybody:
            chosen = elections.offline(state.replicas, state.replicas, alive)
        if chosen is not None:
            self._write(state._replace(leader=chosen.leader, isr=chosen.isr))

    def _write(self, state: PartitionState) -> None:
        changed = state._replace(leader_epoch=state.leader_epoch + 1, controller_epoch=self.epoch)
        self.world.registry.write(changed, state.version, self._fence())

    def _fence(self) -> int | None:
        return None if self.world.rules.write_unfenced else self.epoch

    def _tell(self) -> None:
        """Send what is stored to every live replica; again until it is answered or the broker has another life."""
        state = self.world.registry.state
        if state is None:
            return
        for one, broker_epoch in self.known.items():
            self.world.decide(self, one, Decision(self.epoch, broker_epoch, state))
