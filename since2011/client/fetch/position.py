"""Where the reading of one partition stands.

    AT_TIME -> READY: ListOffsets has told the offset of a time, or of the log's begin or end
    TO_VALIDATE -> READY: the leader's history contains what was read (OffsetForLeaderEpoch), or READY elsewhere
    READY -> TO_VALIDATE: another leader, or the same in another epoch
    READY -> AT_TIME: the position is outside the log and auto.offset.reset says where to go on
    any -> STUCK: the application has to decide; ``trouble`` says what
    any -> AT_TIME or TO_VALIDATE or READY: seek

``offset`` runs ahead of what the application was given: chunks wait between. The paper's answer (§3.2): one number.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.client.fetch.chunk import FetchedChunk
from since2011.client.group_metadata import OffsetAndMetadata


class Stage(Enum):
    """What has to happen next."""

    AT_TIME = auto()
    TO_VALIDATE = auto()
    READY = auto()
    STUCK = auto()


@dataclass(slots=True)
class FetchPosition:
    """See the module. ``turn`` changes whenever what is under way no longer counts."""

    partition: TopicPartition
    stage: Stage = Stage.READY
    offset: int = -1
    """What the next fetch asks for."""
    last_epoch: int = -1
    """Leader epoch of the record before ``offset``; -1 unknown."""
    time: int = 0
    """What ListOffsets is asked for, in AT_TIME."""
    says_epoch: bool = True
    """Whether fetches name ``last_epoch``: to a leader that has forgotten it the offset seems out of range."""
    trouble: Kafka2011Error | None = None
    chunks: deque[FetchedChunk] = field(default_factory=deque)
    paused: bool = False
    asked: bool = False
    """A request about it is under way."""
    turn: int = 0
    asked_before: int = -1
    """The offset that was out of range, while another is looked up; -1: there was none."""
    failures: int = 0
    not_before: float = 0.0
    validated_for: int = -1
    """The leader epoch this position was last compared with."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1

    @property
    def position(self) -> OffsetAndMetadata | None:
        """The next offset the application will be given; None while it is being looked up."""
        if self.chunks:
            first = self.chunks[0]
            return OffsetAndMetadata(first.offset, first.last_epoch)
        return None if self.offset < 0 else OffsetAndMetadata(self.offset, self.last_epoch)

    @property
    def buffered(self) -> int:
        """Bytes that wait for the application."""
        return sum(chunk.size for chunk in self.chunks)

    def go_to(self, offset: int, last_epoch: int = -1) -> None:
        """Read from ``offset`` on; what has been fetched is dropped."""
        self._begin_anew()
        self.offset, self.last_epoch = offset, last_epoch
        # An epoch that came from outside, with a commit, is compared before anything is read.
        self.stage = Stage.TO_VALIDATE if last_epoch >= 0 else Stage.READY
        self.validated_for = -1

    def look_up(self, time: int) -> None:
        """Read from where the log was at ``time``; what has been fetched is dropped."""
        self._begin_anew()
        self.offset = self.last_epoch = -1
        self.stage, self.time = Stage.AT_TIME, time

    def get_stuck(self, trouble: Kafka2011Error) -> None:
        """Nothing is read until the application seeks."""
        self.stage, self.trouble, self.asked = Stage.STUCK, trouble, False
        self.turn += 1

    def validated(self, leader_epoch: int) -> None:
        """What was read is in the leader's log."""
        self.stage, self.validated_for = Stage.READY, leader_epoch

    def fetched(self, chunk: FetchedChunk) -> None:
        """More has come."""
        if chunk.next_offset > self.offset or chunk.size:
            self.chunks.append(chunk)
            self.offset, self.last_epoch = chunk.next_offset, chunk.end_epoch

    def _begin_anew(self) -> None:
        self.chunks.clear()
        self.trouble, self.says_epoch, self.asked_before = None, True, -1
        self.asked = False
        self.turn += 1
        self.failures, self.not_before = 0, 0.0
