"""What every modelled member does: poll, deliver, commit, and suffer.

See docs/group-protocol.md (client side), §22. A member has an application that polls, and a background thread that
heartbeats. Letting go of partitions and taking them happens in the poll, so an application that is busy holds it up;
requests and heartbeats go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from random import Random

from consumers.group_protocol.coordinator.requests import OffsetCommit, OffsetFetch, OffsetToCommit, Request
from consumers.group_protocol.coordinator.results import OffsetCommitResult, OffsetFetchResult, Response
from consumers.sim.actor import DELIVERY_S
from consumers.sim.compare.world import GROUP, HEARTBEAT_S, TOPIC, GroupWorld, Line
from kafka2011.types import TopicPartition
from since2011.wire.error_codes import ErrorCode

_RETRY_S = 0.05
_AT_ONCE = 5
"""Messages of one partition an application takes per poll, as in the world of Algorithm 1."""


class ModelMember(ABC):
    """A consumer process. Thread: one, the simulator's."""

    def __init__(self, world: GroupWorld, name: str) -> None:
        self.world, self.name = world, name
        self.reading: dict[TopicPartition, int] = {}
        """The next message of each partition being delivered."""
        self._fetching: set[TopicPartition] = set()
        self.alive, self.leaving = True, False
        self.frozen_until = self.cut_until = self._busy_until = self._slow_until = 0.0
        self._work_s = 0.0
        self._callbacks: list[Callable[[], None]] = []
        self._commit_at = world.scenario.commit_s
        self.up, self.down = Line(), Line()
        self._patience: dict[str, int] = {}
        self.random = Random(f"{world.scenario.seed}/{name}")
        world.at(0.0, self._poll)
        world.at(self.random.uniform(0, HEARTBEAT_S), self._beat)

    # What a protocol adds

    @abstractmethod
    def on_beat(self) -> None:
        """The background thread's turn."""

    @abstractmethod
    def say_goodbye(self) -> None:
        """Leave in peace."""

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """No rebalance under way, as far as this member knows: the moment to close."""

    @property
    @abstractmethod
    def credentials(self) -> tuple[str, int] | None:
        """Member id and generation or epoch to commit with, or None when not in the group."""

    # The application

    def _poll(self) -> None:
        if not self.alive or self._later(self._poll):
            return
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        if self.world.now >= self._commit_at:
            # Whoever polls again is done with what it was given before.
            self.commit(dict(self.reading))
            self._commit_at = self.world.now + self.world.scenario.commit_s
        work_s = 0.0
        for partition, at in self.reading.items():
            upto = min(self.world.log_end(partition), at + _AT_ONCE)
            self.world.delivered(partition, at, upto)
            self.reading[partition] = upto
            if upto > at and self.world.now < self._slow_until:
                work_s = self._work_s
        self._busy_until = self.world.now + work_s
        self.world.at(max(DELIVERY_S, work_s), self._poll)

    def in_poll(self, what: Callable[[], None]) -> None:
        """Do ``what`` as soon as the application is in its poll."""
        if self._busy_until > self.world.now:
            self._callbacks.append(what)
        else:
            self.awake(what)

    def awake(self, what: Callable[[], None]) -> None:
        """Do ``what`` in the background, as soon as the process runs."""
        if self.alive and not self._later(lambda: self.awake(what)):
            what()

    # Positions

    @property
    def owned(self) -> set[TopicPartition]:
        """What is ours: read already, or about to be."""
        return self.reading.keys() | self._fetching

    def start(self, partitions: Iterable[TopicPartition], then: Callable[[], None] = lambda: None) -> None:
        """Ask for the committed offsets, then read from there."""
        wanted = tuple(sorted(set(partitions) - self.reading.keys()))
        self._fetching = set(wanted)
        if not wanted:
            then()
            return

        def fetched(response: Response) -> None:
            assert isinstance(response, OffsetFetchResult)
            for offset in response.offsets:
                partition = TopicPartition(offset.topic, offset.partition)
                if partition in self._fetching:
                    self.reading[partition] = max(offset.offset, 0)
                    self.world.began(self, partition)
            self._fetching.clear()
            then()

        self.ask("offsets", OffsetFetch(GROUP, wanted), fetched)

    def stop(self, partitions: Iterable[TopicPartition], then: Callable[[], None] | None) -> None:
        """Give partitions up. With ``then``: commit what was delivered first, and go on when that is answered."""
        self._fetching.difference_update(partitions)
        gone = {partition: self.reading.pop(partition) for partition in partitions if partition in self.reading}
        for partition in gone:
            self.world.ended(self, partition)
        if then is not None:
            self.commit(gone, then)

    def lose(self) -> None:
        """Put out of the group: what we read belongs to others now, and is not ours to commit."""
        self.forget("offsets")
        self.stop(list(self.owned), None)

    def commit(self, positions: dict[TopicPartition, int], then: Callable[[], None] | None = None) -> None:
        """Send positions with what identifies this member.

        With ``then`` they are the last of these partitions: a stale epoch or a broken line is tried again. Without, the
        next commit makes up for a lost one, and trying again could only move offsets back.
        """
        who = self.credentials
        if who is None or not positions:
            if then is not None:
                then()
            return

        def answered(response: Response | None) -> None:
            if then is None:
                return
            stale = isinstance(response, OffsetCommitResult) and any(
                each.error is ErrorCode.STALE_MEMBER_EPOCH for each in response.partitions
            )
            if self.alive and (response is None or stale):
                self.world.at(_RETRY_S, lambda: self.awake(lambda: self.commit(positions, then)))
            else:
                self.awake(then)

        offsets = tuple(OffsetToCommit(TOPIC, p.partition, at) for p, at in sorted(positions.items()))
        self.world.send(self, OffsetCommit(GROUP, who[1], who[0], offsets), answered)

    # Requests and heartbeats

    def ask(self, kind: str, request: Request, then: Callable[[Response], None]) -> None:
        """Send; send again if the line broke. A newer request of its kind makes the answer worthless."""
        mine = self._patience[kind] = self._patience.get(kind, 0) + 1

        def answered(response: Response | None) -> None:
            def take() -> None:
                if self._patience[kind] == mine:
                    self._patience[kind] += 1
                    if response is None:
                        self.ask(kind, request, then)
                    else:
                        then(response)

            self.awake(take)

        self.world.send(self, request, answered)

    def forget(self, kind: str) -> None:
        """Pay no attention to an answer still under way."""
        self._patience[kind] = self._patience.get(kind, 0) + 1

    def _beat(self) -> None:
        if self.alive and not self._later(self._beat):
            self.on_beat()
            self.world.at(HEARTBEAT_S, self._beat)

    # Misfortunes

    @property
    def is_cut(self) -> bool:
        return self.cut_until > self.world.now

    def leave(self) -> None:
        """Close in peace: commit, say goodbye."""
        self.leaving = True

        def close() -> None:
            if self.is_settled:
                self.stop(list(self.owned), gone)
            else:
                self.world.at(_RETRY_S, lambda: self.in_poll(close))

        def gone() -> None:
            self.say_goodbye()
            self.alive = False

        self.in_poll(close)

    def kill(self) -> None:
        """kill -9: the coordinator notices when the session times out."""
        self.alive = False
        for partition in list(self.reading):
            self.world.ended(self, partition)
        self.reading.clear()

    def pause(self, seconds: float) -> None:
        """SIGSTOP: nothing runs, no heartbeat is sent."""
        self.frozen_until = self.world.now + seconds

    def cut(self, seconds: float) -> None:
        """The line to the coordinator is dead; the log can still be read."""
        self.cut_until = self.world.now + seconds

    def slow(self, seconds: float, work_s: float = 2.0) -> None:
        """The application works ``work_s`` between polls, for ``seconds``."""
        self._slow_until, self._work_s = self.world.now + seconds, work_s

    def _later(self, what: Callable[[], None]) -> bool:
        if self.frozen_until > self.world.now:
            self.world.at(self.frozen_until - self.world.now, what)
            return True
        return False
