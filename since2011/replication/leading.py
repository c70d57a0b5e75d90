"""What a broker does as leader: appends are told to followers, readers and waiting producers as far as the rules allow.

A partition without other replicas has no ``Leader``: what is appended, and flushed where the topic asks for that, is
committed at once, and nothing of replication is on its way.

| asked | refused with |
|---|---|
| acks=all with fewer in sync than ``min.insync.replicas`` | NOT_ENOUGH_REPLICAS; after the append ..._AFTER_APPEND |
| acks=0 or 1 when the session with ZooKeeper may have ended (design D22) | NOT_LEADER_OR_FOLLOWER |
| leadership lost while waiting | NOT_LEADER_OR_FOLLOWER |
| not replicated within the request's own time | REQUEST_TIMED_OUT; what was appended stays |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from twisted.internet.defer import Deferred

from kafka2011.broker.reactor import Reactor, in_time
from kafka2011.types import TopicPartition
from since2011.replication.delayed_fetch import DelayedFetches
from since2011.replication.flushes import Flushes
from since2011.replication.in_sync import InSyncSets
from since2011.replication.leader import Action, Raised, SyncRules
from since2011.replication.led import Led
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

LeadPartitions = Mapping[tuple[str, int], Led]


class Leading:
    """Acts for all partitions this broker leads. Thread: reactor."""

    def __init__(
        self,
        reactor: Reactor,
        led: LeadPartitions,
        flushes: Flushes,
        readers: DelayedFetches,
        *,
        rules: SyncRules,
        has_lease: Callable[[int], bool] = lambda term: True,
        is_live: Callable[[int], bool] = lambda broker: True,
    ) -> None:
        """``led`` is what this broker leads at any moment; ``has_lease`` whether nobody else can by right of a newer
        session than that of ``term``."""
        self._reactor, self._led, self._flushes = reactor, led, flushes
        self.readers = readers
        self.followers = DelayedFetches(reactor)
        """Fetches of followers that wait for what is appended."""
        self.rules, self._has_lease, self._is_live = rules, has_lease, is_live
        self.in_sync: InSyncSets | None = None
        """None without ZooKeeper; then no partition has other replicas."""

    # -- appending ------------------------------------------------------------------------------------------------

    def check(self, led: Led, *, everywhere: bool) -> None:
        """Refuse an append that could not be acknowledged as it is asked for; ``everywhere``: acks=all."""
        leader = led.leader
        if leader is None:
            return
        if not everywhere and not self.may_answer(led):
            raise Refused(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{led.key} may be led by another broker: ZooKeeper has not answered for as long as a session lasts",
            )
        if everywhere and not leader.has_enough_replicas:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{led.key}: {len(leader.state.isr)} replicas in sync; acks=all needs {leader.min_insync}",
            )

    def may_answer(self, led: Led) -> bool:
        """Whether nobody else can lead the partition by now, as far as the lease tells (design D22)."""
        return led.leader is None or self._has_lease(led.term)

    def stored(self, led: Led, end: int, *, everywhere: bool, timeout_s: float) -> Deferred[None] | None:
        """Batches up to ``end`` were appended: what must be waited for before that is acknowledged; None: nothing.

        On disk where the topic's ``flush.messages`` or ``flush.ms`` asks for it, and if ``everywhere``, at all replicas
        in sync.
        """
        log = led.log
        assert log is not None
        leader = led.leader
        if leader is not None:
            self.followers.wake(led.topic, led.index)
        flushing: Deferred[None] | None = None
        if log.should_flush():
            flushing = self._flushes.flushed(log, end).addCallback(lambda upto: self._reached(led, upto))
        else:
            self._reached(led, log.log_end_offset)
        if leader is None or not everywhere:
            return flushing
        if flushing is not None:
            return flushing.addCallback(lambda _: self.replicated(led, end, timeout_s))
        return self.replicated(led, end, timeout_s)

    def replicated(self, led: Led, end: int, timeout_s: float) -> Deferred[None] | None:
        """Fire when the whole in-sync set has everything before ``end``; None if it has."""
        leader = led.leader
        if leader is None or (leader.is_replicated(end) and len(leader.maximal_isr) >= leader.min_insync):
            return None
        waiting = in_time(self._reactor, timeout_s, led.waits.until(end), f"{led.key} was not replicated to {end}")
        if leader.is_replicated(end):
            led.waits.reached(end)
        return waiting.addCallback(lambda _: self._check_after(led))

    def _check_after(self, led: Led) -> None:
        now = self._led.get((led.topic, led.index), led)
        leader = now.leader
        if leader is not None and len(leader.maximal_isr) < leader.min_insync:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"{led.key}: appended, but only {len(leader.maximal_isr)} replicas are in sync by now",
            )

    def settled(self, led: Led, timeout_s: float = 60.0) -> Deferred[None] | None:
        """Fire when everything the leadership began with is committed; None if it is."""
        leader = led.leader
        if leader is None or led.is_settled:
            return None
        epoch_start = leader.epoch_start
        return in_time(self._reactor, timeout_s, led.waits.until(epoch_start), f"{led.key} was not committed")

    def _reached(self, led: Led, upto: int) -> None:
        """This broker has everything before ``upto`` as safely as the topic asks for."""
        log = led.log
        assert log is not None
        if led.leader is None:
            if log.raise_high_watermark(upto):
                self.readers.wake(led.topic, led.index)
        elif self._is_led(led):
            self.act(led, led.leader.appended(upto, self._reactor.seconds()))

    def _is_led(self, led: Led) -> bool:
        return self._led.get((led.topic, led.index)) is led

    # -- followers ------------------------------------------------------------------------------------------------

    def fetched(self, led: Led, replica: int, offset: int, log_start: int) -> None:
        """A follower asks for what follows ``offset``, which tells what it has."""
        leader = led.leader
        if leader is None or not led.log_start_offset <= offset <= led.log_end_offset:
            return
        now, live = self._reactor.seconds(), self._is_live(replica)
        self.act(led, leader.fetched(replica, offset, log_start, now, broker_is_live=live))

    def hung_up(self, replica: int, partitions: Iterable[TopicPartition]) -> None:
        """The connection on which a follower fetched these was closed."""
        now = self._reactor.seconds()
        asked = []
        for key in partitions:
            led = self._led.get((key.topic, key.partition))
            if led is not None and led.leader is not None:
                led.leader.disconnected(replica, now)
                asked.append(led)
        if asked:
            self._reactor.callLater(self.rules.grace_s + 0.01, self._look, asked)

    def tick(self) -> None:
        """Look for followers that have fallen behind."""
        self._look(list(self._led.values()))

    def _look(self, partitions: Iterable[Led]) -> None:
        now = self._reactor.seconds()
        for led in partitions:
            if led.leader is not None and self._is_led(led):
                self.act(led, led.leader.tick(now))

    # -- decisions of the rules -----------------------------------------------------------------------------------

    def act(self, led: Led, actions: Iterable[Action]) -> None:
        """Carry them out."""
        for action in actions:
            if isinstance(action, Raised):
                self._raised(led, action.high_watermark)
            elif self.in_sync is not None:
                self.in_sync.propose(led, action)

    def _raised(self, led: Led, high_watermark: int) -> None:
        if led.log is not None and led.log.raise_high_watermark(high_watermark):
            self.readers.wake(led.topic, led.index)
        led.waits.reached(high_watermark)

    def in_sync_stored(self, led: Led, version: int) -> None:
        """What the leader has proposed is in ZooKeeper."""
        if led.leader is not None and self._is_led(led):
            self.act(led, led.leader.isr_written(version, self._reactor.seconds()))

    def reconfigured(self, led: Led, min_insync: int) -> None:
        """The topic's settings have changed."""
        leader = led.leader
        if leader is not None and leader.rules.min_insync != min_insync:
            leader.rules = replace(leader.rules, min_insync=min_insync)
            self.act(led, leader.begin(self._reactor.seconds()))
