"""Hand out producer ids from blocks that the cluster's metadata gives to one broker at a time."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from since2011.topics.store import MetadataStore


class ProducerIdBlocks:
    """Producer ids, none twice. Thread: reactor; a new block is fetched in another."""

    def __init__(self, store: MetadataStore, at_least: int) -> None:
        self._store, self._at_least = store, at_least
        self._left: Iterator[int] = iter(())
        self._fetching: Deferred[None] | None = None
        self.blocks: list[range] = []
        """All blocks this process has had."""

    def is_fresh(self, producer_id: int) -> bool:
        """Tell whether this process may have handed ``producer_id`` out."""
        return any(producer_id in block for block in self.blocks)

    async def next(self) -> int:
        """A producer id nobody has. Fails as the store does."""
        while True:
            found = next(self._left, None)
            if found is not None:
                return found
            await self._fetched()

    def _fetched(self) -> Deferred[None]:
        """Fire when there is a new block; everybody who waits shares it."""
        waiting: Deferred[None] = Deferred(lambda _: None)

        def done(result: Failure | None) -> None:
            if not waiting.called:
                waiting.callback(result)

        fetching = self._fetching
        if fetching is None:
            work = deferToThread(self._store.take_producer_ids, self._at_least)
            fetching = self._fetching = work.addCallback(self._took)
            fetching.addBoth(self._done)
        fetching.addBoth(done)
        return waiting

    def _took(self, block: range) -> None:
        self.blocks.append(block)
        self._left = iter(block)

    def _done(self, result: Failure | None) -> Failure | None:
        self._fetching = None
        return result
