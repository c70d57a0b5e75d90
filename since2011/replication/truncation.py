"""Where a follower's history parts from its leader's, by epochs (KIP-101, KIP-279). No I/O.

The follower asks "where did epoch E end?" for the newest epoch in its log. The leader answers with the newest epoch it
has that is not newer than E, and where that ended. If the follower knows the answered epoch, both have it, and it was
written by one leader: up to the smaller of both ends they are equal, and the rest goes. If not, everything the follower
has beyond the answered epoch is unknown to the leader: it goes, and the question is asked again.

Kafka before 0.11 cut at the high watermark instead, which a follower learns one round late: a record that was
acknowledged could be cut and lost (``kafka2011 sim replication --lesson high-watermark-truncation``).
"""

from __future__ import annotations

from typing import NamedTuple

from since2011.log.epoch_history import EpochHistory


class Cut(NamedTuple):
    """Cut the log at ``offset``; ``done`` if nothing more is to be asked."""

    offset: int
    done: bool


def question(history: EpochHistory) -> int | None:
    """The epoch to ask about; None if the log knows of none, then it is cut at its own high watermark."""
    return history.latest if history.entries else None


def cut(history: EpochHistory, log_end: int, high_watermark: int, answer: tuple[int, int]) -> Cut:
    """What to do with the leader's answer (epoch, end of that epoch)."""
    epoch, end = answer
    if end < 0:
        return Cut(min(high_watermark, log_end), done=True)
    own_epoch, own_end = history.end_offset(epoch, log_end)
    if own_end < 0:
        return Cut(min(end, log_end), done=True)
    if own_epoch == epoch:
        return Cut(min(own_end, end, log_end), done=True)
    return Cut(min(own_end, log_end), done=False)
