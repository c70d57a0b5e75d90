"""The coordinator's settings and what it needs from outside: a log for offsets, and the topics that exist.

See docs/group-protocol.md (defaults), §11 (offset storage).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from since2011.log.producer_state import Verification


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Named like the broker settings of §13, in milliseconds unless the name says otherwise."""

    min_session_ms: int = 6_000
    max_session_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_group_size: int = 10_000
    new_member_join_ms: int = 300_000
    offset_metadata_max_size: int = 4_096
    max_metadata_size: int = 262_144
    """Bytes of subscription one member may bring, all its protocols together."""
    max_group_bytes: int = 16 << 20
    """Of all members of a group: subscriptions and assignments."""
    max_groups_bytes: int = 64 << 20
    """Of all groups."""
    max_offsets_bytes: int = 128 << 20
    """Of all committed offsets with their notes."""
    max_groups: int = 100_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_ms: int = 600_000
    consumer_session_ms: int = 45_000
    consumer_heartbeat_ms: int = 5_000
    consumer_assignors: tuple[str, ...] = ("uniform", "range")


@dataclass(frozen=True, slots=True)
class Record:
    """One keyed record of the offsets log (§11); no value = tombstone."""

    key: bytes
    value: bytes | None
    offset: int = -1
    """Where it lies, if it was read from the log."""


@dataclass(frozen=True, slots=True)
class InTransaction:
    """Records count only once the producer's transaction is committed."""

    producer_id: int
    epoch: int
    must_be_verified: bool = False
    """The transaction coordinator was asked, and ``verified`` is its word (KIP-890)."""
    verified: Verification | None = None


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """A place in one partition of the offsets log: the end of what was appended."""

    partition: int
    offset: int


class OffsetLog(Protocol):
    """Where commits and group records become durable."""

    def append(
        self, group: str, records: Sequence[Record], transaction: InTransaction | None = None
    ) -> LogPosition | None:
        """Append to the group's partition and return the end, or None when it is durable already.

        Raises Kafka2011Error when the log cannot take it; nothing is kept then.
        """

    def is_available(self, group: str) -> bool:
        """Whether the group's records could be read at all: without them, "never committed" would be a lie."""


class Topics(Protocol):
    """The topics a group may commit to and be assigned."""

    def partition_count(self, topic: str) -> int | None:
        """How many partitions, numbered from 0, or None when there is no such topic."""

    def topic_id(self, topic: str) -> UUID:
        """The id of a topic, under which it is written down."""

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id; None when there is none."""
