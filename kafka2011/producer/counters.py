"""What a producer counted: the only thing it can say about messages nobody acknowledges.

Paper: §5 (no acknowledgement: the producer sends as fast as the broker takes it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Counters:
    """Numbers since the producer was made.

    ``accepted`` = ``sent`` + ``dropped`` once everything is flushed. ``sent`` without acknowledgement means
    handed to the kernel, not stored.
    """

    accepted: int = 0
    """Messages ``send`` took."""
    sent: int = 0
    """Messages handed to a broker; with acks, messages the broker confirmed."""
    requests: int = 0
    bytes: int = 0
    """Bytes of message sets, after compression."""
    retried: int = 0
    """Messages that were tried again, here or at another broker."""
    dropped: int = 0
    """Messages given up, or whose fate is unknown because the connection broke while they were being sent."""
    dropped_by_reason: Counter[str] = field(default_factory=Counter)

    def drop(self, n_messages: int, reason: str) -> None:
        """Count messages given up."""
        self.dropped += n_messages
        self.dropped_by_reason[reason] += n_messages

    def add(self, other: Counters) -> None:
        """Add another's numbers to these."""
        self.accepted += other.accepted
        self.sent += other.sent
        self.requests += other.requests
        self.bytes += other.bytes
        self.retried += other.retried
        self.dropped += other.dropped
        self.dropped_by_reason.update(other.dropped_by_reason)

    def as_dict(self) -> dict[str, int | dict[str, int]]:
        """The numbers, ready for JSON."""
        return asdict(self) | {"dropped_by_reason": dict(self.dropped_by_reason)}
