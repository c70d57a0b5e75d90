"""The partitions this broker follows, and the fetchers that follow them: a few for each leader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafka2011.broker.reactor import Reactor
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress
from since2011.replication.copy import Copy, Logs, new_copy
from since2011.replication.fetcher import Fetcher, FetchSettings
from since2011.replication.flushes import Flushes
from since2011.replication.partition_state import PartitionState
from since2011.replication.throttle import Throttle
from since2011.topics.internal import java_hash


class Following:
    """Starts and ends the following of partitions. Thread: reactor."""

    def __init__(
        self,
        me: int,
        logs: Logs,
        *,
        reactor: Reactor,
        journal: Journal,
        settings: FetchSettings,
        address_of: Callable[[int], BrokerAddress | None],
        flushes: Flushes,
        throttle: Throttle,
    ) -> None:
        self._me, self._logs, self._settings = me, logs, settings
        self._new_fetcher = partial(
            Fetcher,
            me,
            reactor=reactor,
            journal=journal,
            settings=settings,
            address_of=address_of,
            flushes=flushes,
            throttle=throttle,
        )
        self.copies: dict[tuple[str, int], Copy] = {}
        self.fetchers: dict[tuple[int, int], Fetcher] = {}
        self._n_bytes_before = 0

    async def follow(self, topic: str, index: int, state: PartitionState) -> None:
        """Follow a partition's leader from now on, in a new epoch. Raises Kafka2011Error when its log is offline."""
        await self.leave(topic, index)
        copy = new_copy(self._me, topic, index, state, self._logs)
        self.copies[topic, index] = copy
        await copy.begin()
        if self.copies.get((topic, index)) is not copy:
            return
        place = self._place(copy)
        fetcher = self.fetchers.get(place)
        if fetcher is None:
            fetcher = self.fetchers[place] = self._new_fetcher(*place)
        fetcher.add(copy)

    async def leave(self, topic: str, index: int) -> None:
        """Follow it no more; returns when nothing works on its log."""
        copy = self.copies.pop((topic, index), None)
        if copy is None:
            return
        place = self._place(copy)
        fetcher = self.fetchers.get(place)
        if fetcher is not None:
            fetcher.remove(copy)
            if not fetcher.copies:
                self._n_bytes_before += fetcher.n_bytes
                del self.fetchers[place]
        await copy.when_quiet()

    @property
    def n_bytes(self) -> int:
        """Bytes of records fetched from all leaders."""
        return self._n_bytes_before + sum(fetcher.n_bytes for fetcher in list(self.fetchers.values()))

    def stop(self) -> None:
        """Follow nobody any more."""
        for fetcher in self.fetchers.values():
            fetcher.stop()
        self.fetchers.clear()
        self.copies.clear()

    def _place(self, copy: Copy) -> tuple[int, int]:
        number = abs(31 * java_hash(copy.topic) + copy.index) % self._settings.n_fetchers
        return copy.state.leader, number
