"""Replication at no more than a set rate, for replicas that are behind (KIP-73).

A reassignment moves whole partitions; without a limit it would take what clients need. Only replicas named in a topic's
``follower.replication.throttled.replicas`` are held back, and only while they are behind: a replica in sync that was
held back would leave the in-sync set. The settings of the leader's side are kept and have no effect here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Throttled(Protocol):
    """A partition that may be held back."""

    @property
    def topic(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def has_lag(self) -> bool: ...


class Throttle:
    """Bytes of one direction at one broker. Thread: reactor."""

    pause_s = 0.1
    """How long whoever is held back waits before it asks again."""

    def __init__(
        self,
        now: Callable[[], float],
        rate: Callable[[], int | None],
        is_listed: Callable[[str, int], bool],
    ) -> None:
        """``rate`` is in bytes per second, None without a limit; ``is_listed`` whether a replica is to be held back."""
        self._now, self._rate, self._is_listed = now, rate, is_listed
        self._owed, self._seen = 0.0, now()

    def holds_back(self, partition: Throttled) -> bool:
        """Whether the partition has to wait."""
        rate = self._rate()
        if rate is None or not partition.has_lag or not self._is_listed(partition.topic, partition.index):
            return False
        return self._left(rate) > 0

    def took(self, partition: Throttled, n_bytes: int) -> None:
        """So much was moved."""
        rate = self._rate()
        if rate is not None and self._is_listed(partition.topic, partition.index):
            self._left(rate)
            self._owed += n_bytes

    def _left(self, rate: int) -> float:
        """What was moved beyond the rate."""
        now = self._now()
        self._owed = max(0.0, self._owed - (now - self._seen) * rate)
        self._seen = now
        return self._owed
