"""What an application hears of a rebalance, in its own poll.

See docs/group-protocol.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka2011.types import TopicPartition


class Listener:
    """Override what matters. Called in the thread that polls, before anything of the change takes effect for others."""

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are ours now; a seek in here counts."""

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These are about to go to others: the last chance to commit."""

    def lost(self, partitions: Sequence[TopicPartition]) -> None:
        """These are others' already: a commit would be refused."""
