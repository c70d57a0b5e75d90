"""Bring what leaders propose into ZooKeeper: all proposals of a moment in one go, in a thread, and a notice of them.

proposed -> written                      stored: the leader is told the node's new version
         -> refused                      somebody else has decided: the leader waits to be told
         -> no answer                    written again as it was, until there is one or the leadership is over
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from kafka2011.broker.reactor import Reactor
from kafka2011.events import Journal
from since2011.replication.events import InSyncSetChanged
from since2011.replication.leader import ProposeIsr
from since2011.replication.led import Led
from zk_registry.modern.in_sync import Partition, Refusal, notify, write_in_sync_sets
from zk_registry.modern.texts import PartitionState
from zk_registry.operations import Registry, RegistryError

RETRY_S = 0.3
NOTICE_S = 1.0
"""How long changes are collected before the controller is told of them."""
MOST_IN_NOTICE = 300

Sets = Mapping[Partition, tuple[PartitionState, int]]


class InSyncSets:
    """The proposals of this broker's leaders. Thread: reactor; ZooKeeper is asked in others."""

    def __init__(
        self, reactor: Reactor, registry: Registry, journal: Journal, stored: Callable[[Led, int], None]
    ) -> None:
        """``stored(led, version)`` is called when what the leader has proposed is in the node."""
        self._reactor, self._registry, self._journal, self._stored = reactor, registry, journal, stored
        self._proposed: dict[Partition, tuple[Led, ProposeIsr]] = {}
        self._is_writing = self._is_due = False
        self._to_tell: dict[Partition, None] = {}
        self._is_telling = False
        self.n_shrinks = self.n_expands = self.n_failed = 0

    def propose(self, led: Led, proposal: ProposeIsr) -> None:
        """Write it soon."""
        self._proposed[led.topic, led.index] = led, proposal
        self._write_soon(0.0)

    def _write_soon(self, seconds: float) -> None:
        if not self._is_due and not self._is_writing:
            self._is_due = True
            self._reactor.callLater(seconds, self._write)

    def _write(self) -> None:
        self._is_due = False
        proposed, self._proposed = self._proposed, {}
        wanted = {key: one for key, one in proposed.items() if _is_pending(*one)}
        if not wanted:
            return
        self._is_writing = True
        sets = {key: (_state(led, proposal), proposal.version) for key, (led, proposal) in wanted.items()}
        writing: Deferred[dict[Partition, int | Refusal]] = deferToThread(write_in_sync_sets, self._registry, sets)
        writing.addCallback(self._answered, wanted)

    def _answered(
        self, answers: dict[Partition, int | Refusal], wanted: dict[Partition, tuple[Led, ProposeIsr]]
    ) -> None:
        self._is_writing = False
        again = False
        for key, (led, proposal) in wanted.items():
            answer = answers[key]
            if not _is_pending(led, proposal):
                continue
            if isinstance(answer, int):
                self._changed(key, led, proposal, answer)
            elif answer is Refusal.DECIDED:
                self.n_failed += 1
                assert led.leader is not None
                led.leader.isr_refused()
            else:
                self.n_failed += 1
                self._proposed.setdefault(key, (led, proposal))
                again = True
        if self._proposed:
            self._write_soon(RETRY_S if again else 0.0)

    def _changed(self, key: Partition, led: Led, proposal: ProposeIsr, version: int) -> None:
        assert led.leader is not None
        if len(proposal.isr) < len(led.leader.state.isr):
            self.n_shrinks += 1
        else:
            self.n_expands += 1
        self._journal.emit(
            InSyncSetChanged(topic=led.topic, partition=led.index, isr=proposal.isr, reason=proposal.why)
        )
        self._stored(led, version)
        self._to_tell[key] = None
        self._tell_soon()

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self._reactor.callLater(NOTICE_S, self._tell)

    def _tell(self) -> None:
        partitions = list(self._to_tell)[:MOST_IN_NOTICE]
        for key in partitions:
            del self._to_tell[key]

        def told(done: bool) -> None:
            self._is_telling = False
            if not done:
                self._to_tell.update(dict.fromkeys(partitions))
            if self._to_tell:
                self._tell_soon()

        deferToThread(self._notify, partitions).addCallback(told)

    def _notify(self, partitions: list[Partition]) -> bool:
        try:
            notify(self._registry, partitions)
        except RegistryError:
            return False
        return True


def _is_pending(led: Led, proposal: ProposeIsr) -> bool:
    """Whether the leader still waits for this; if it has been deposed, or told another set, it does not."""
    return led.leader is not None and led.leader.pending is proposal


def _state(led: Led, proposal: ProposeIsr) -> PartitionState:
    assert led.leader is not None
    state = led.leader.state
    return PartitionState(state.leader, state.leader_epoch, proposal.isr, state.controller_epoch)
