"""How fast one client may have topics created.

A topic is made because somebody names it, and then it is there for good: a directory, a place in every list, nodes in
ZooKeeper. So each address has a purse of creations that fills up slowly; who has emptied it is refused, named, and may
come back. Known topics cost nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

MOST_ADDRESSES = 10_000


class CreationRate:
    """A token bucket for each address. Thread: reactor."""

    def __init__(self, per_second: int, burst: int, now: Callable[[], float]) -> None:
        """``per_second`` 0: no limit."""
        self._per_second, self._burst, self._now = per_second, burst, now
        # What is left, and when that was; the address that asked longest ago is the first.
        self._purses: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Pay for one creation; False if ``address`` cannot."""
        if not self._per_second:
            return True
        now = self._now()
        left, then = self._purses.pop(address, (float(self._burst), now))
        left = min(float(self._burst), left + (now - then) * self._per_second)
        can = left >= 1
        self._purses[address] = (left - can, now)
        if len(self._purses) > MOST_ADDRESSES:
            self._purses.popitem(last=False)
        return can

    @property
    def sentence(self) -> str:
        """Why somebody is refused."""
        return (
            f"too many new topics from one address: {self._burst} at once and {self._per_second} a second can be "
            "(max.topic.creations.burst, max.topic.creations.per.second); try again in a moment"
        )
