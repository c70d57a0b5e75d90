"""A partition this broker leads, as the handlers of requests see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from kafka2011.types import TopicPartition
from since2011.log.log import ModernLog
from since2011.replication.leader import Leader
from since2011.replication.waits import Waits
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused


@dataclass(slots=True)
class Led:
    """A partition this broker leads. ``log`` is None while nobody has written to it."""

    topic: str
    index: int
    topic_id: UUID
    leader_epoch: int
    log: ModernLog | None
    leader: Leader | None = None
    """What is known of the other replicas; None: there are none, and what is in the log is what readers may see."""
    term: int = 0
    """The session with ZooKeeper by right of which this broker leads."""
    is_new: bool = True
    """Whether there may be no log because nobody has ever written, and not because a disk is away."""
    waits: Waits = field(default_factory=Waits)

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def log_start_offset(self) -> int:
        return 0 if self.log is None else self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return 0 if self.log is None else self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return 0 if self.log is None else self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return 0 if self.log is None else self.log.last_stable_offset

    @property
    def is_settled(self) -> bool:
        """Whether everything this leadership began with is held by the whole in-sync set.

        Until then the high watermark may be behind what the last leader has told its readers, and nobody is told it.
        """
        return self.leader is None or self.high_watermark >= self.leader.epoch_start

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leadership; -1: it does not say."""
        if 0 <= epoch < self.leader_epoch:
            raise Refused(ErrorCode.FENCED_LEADER_EPOCH, f"leader epoch {epoch}; it is {self.leader_epoch} by now")
        if epoch > self.leader_epoch:
            raise Refused(ErrorCode.UNKNOWN_LEADER_EPOCH, f"leader epoch {epoch}; {self.leader_epoch} is known here")

    def check_replica(self, replica: int, epoch: int) -> None:
        """Refuse a broker that holds no replica, as far as is known here."""
        if self.leader is None or replica not in self.leader.followers:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise Refused(error, f"broker {replica} is no replica of {self.topic}-{self.index} that is known here")
