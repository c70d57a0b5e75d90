"""Drop what was delivered before: "if an application cares about duplicates, it must add its own logic" (§3.3).

Two ways, as the paper names them: by the offsets a message carries, or by some unique key within it.

    fresh = ByOffset(stored_positions)
    for message in stream:
        if fresh(message):
            store(message, fresh.positions)      # in one transaction: then each message counts once

Paper: §3.3.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

from consumers.algorithm1.steps import Owned
from consumers.stream import StreamMessage


class ByOffset:
    """True for a message not seen before in its partition. Exact, except that messages of a compressed set are passed
    again if the set was only partly seen: they share one offset. Thread: one.
    """

    def __init__(self, positions: Mapping[Owned, int] | None = None) -> None:
        self.positions = dict(positions or {})
        """The next offset of each partition; store it together with what the messages led to."""
        self.dropped = 0

    def __call__(self, message: StreamMessage) -> bool:
        where = Owned(message.topic, message.partition)
        seen_to = self.positions.get(where, 0)
        if message.offset < seen_to:
            self.dropped += 1
            return False
        self.positions[where] = max(seen_to, message.next_offset)
        return True


class ByKey:
    """True for a message whose key is not among the last ``remember`` keys. Thread: one."""

    def __init__(self, key: Callable[[StreamMessage], Hashable], remember: int = 100_000) -> None:
        self._key, self._remember = key, remember
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self.dropped = 0

    def __call__(self, message: StreamMessage) -> bool:
        key = self._key(message)
        if key in self._seen:
            self._seen.move_to_end(key)
            self.dropped += 1
            return False
        self._seen[key] = None
        if len(self._seen) > self._remember:
            self._seen.popitem(last=False)
        return True
