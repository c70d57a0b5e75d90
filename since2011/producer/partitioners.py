"""Which partition a record goes to.

With a key: the key's murmur2, as every client of Kafka has it (``since2011.client.partitioner``). Without: the *sticky*
partition, the same one until a batch is full, then another (KIP-480); by bytes, so that a slow broker, whose batches
are sent less often, does not get more (KIP-794); and where queues are long, less is put (adaptive). Or a function of
the application.

The paper's answer (§3): a random partition, or one that a key and a function decide. A random one for each message
would make small batches of today's records.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Partitioner(Protocol):
    """A choice of the application's own; it sees the bytes, after serialization."""

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, n_partitions: int, available: Sequence[int]
    ) -> int:
        """A number from 0 to ``n_partitions`` - 1; ``available`` have a leader at the moment."""
        ...


class Sticky:
    """The partition for records without a key, of one topic. Under its producer's lock."""

    __slots__ = ("_adaptive", "_random", "bytes", "partition")

    def __init__(self, *, adaptive: bool = True, source: random.Random | None = None) -> None:
        self.partition = -1
        self.bytes = 0
        """What the partition got since it was chosen."""
        self._adaptive, self._random = adaptive, source or random.Random()

    def next(self, n_partitions: int, available: Sequence[int], waiting: Sequence[int]) -> int:
        """Choose another one; ``waiting`` is how many batches wait for each of the available."""
        candidates = available or range(n_partitions)
        self.bytes = 0
        if self._adaptive and available and any(waiting):
            # The longest queue gets a share of one, an empty one the length of the longest and one more.
            longest = max(waiting)
            self.partition = self._random.choices(candidates, [longest + 1 - length for length in waiting])[0]
        else:
            others = [one for one in candidates if one != self.partition] or candidates
            self.partition = self._random.choice(others)
        return self.partition
