"""What happens to a consumer, told to its journal.

Paper: §3.2 (rebalance, ownership, offsets), §3.3 (delivery).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event
from kafka2011.types import BrokerPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent(Event):
    """Base: which member of which group."""

    section: ClassVar[str] = "§3.2"
    group: str
    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRegistered(GroupEvent):
    """The id node is there; ``session`` is the ZooKeeper session that holds it."""

    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTakenOut(GroupEvent):
    """Somebody deleted or changed this member's id node while its session lives: it is written again."""

    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLeft(GroupEvent):
    """The consumer let go of everything and left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLost(GroupEvent):
    """ZooKeeper ended the session: all ownership is forgotten, a new incarnation registers."""

    level: ClassVar[int] = logging.WARNING
    reborn_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryHeld(GroupEvent):
    """ZooKeeper, or this process itself, was away for so long that ownership can no longer be assumed: nothing more is
    delivered."""

    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResumed(GroupEvent):
    """ZooKeeper answered again under the same session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStarted(GroupEvent):
    """Algorithm 1 begins; why, if that is known before the registries are read."""

    edition: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceDone(GroupEvent):
    """The member owns its share and reads it. ``reason``: what had changed (``algorithm1/reasons.py``)."""

    owned: tuple[str, ...]
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed(GroupEvent):
    """Somebody else's owner node, or a registry that did not answer; the member waits a bit and retries."""

    level: ClassVar[int] = logging.DEBUG
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(GroupEvent):
    """An edition with a limit of attempts stopped trying: alive, registered, reading nothing."""

    level: ClassVar[int] = logging.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEvent(GroupEvent):
    """Base: which partition of which topic."""

    topic: str
    partition: BrokerPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(PartitionEvent):
    """The owner node is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefused(PartitionEvent):
    """The owner node is ``holder``'s."""

    level: ClassVar[int] = logging.DEBUG
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimBlocked(PartitionEvent):
    """The owner node is of nobody in the group (session 0: of no session, it stays until somebody deletes it): this
    partition is left out until the node is gone, the others are read."""

    level: ClassVar[int] = logging.WARNING
    holder: str
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTakenOut(PartitionEvent):
    """Somebody deleted the owner node of a partition that is read: delivery stops, and the member claims again."""

    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(PartitionEvent):
    """The owner node is being given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(GroupEvent):
    """Offsets were written, all or none."""

    offsets: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFenced(GroupEvent):
    """A commit was refused because this member's id node is gone: it is no longer a member."""

    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed(GroupEvent):
    """The registry did not confirm a commit; it is tried again, duplicates may follow a crash (§3.3)."""

    level: ClassVar[int] = logging.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetUnreadable(PartitionEvent):
    """The offset node holds no offset: treated as missing, the reset policy decides."""

    level: ClassVar[int] = logging.ERROR
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetReset(Event):
    """The offset lay outside the log and the policy moved it: what lies between is skipped, or read again."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    topic: str
    partition: int
    broker: str
    asked: int | None
    moved_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherWaiting(Event):
    """A broker does not answer; the fetcher keeps trying."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    broker: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherBack(Event):
    """The broker answers again."""

    section: ClassVar[str] = "§3.2"
    broker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStuck(Event):
    """A partition cannot be read on: the error is in the stream, at this offset."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "§3.3"
    topic: str
    partition: int
    offset: int
    reason: str
