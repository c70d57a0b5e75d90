"""Which route a message takes: which partition of which broker, through which sender.

Without a key the choice is random, and it is never a broker that failed a moment ago while there are others. With a key
it is the partitioner's.

Paper: §3.2 ("either a randomly selected partition or a partition semantically determined by a partitioning key").
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from kafka2011.clock import Clock
from kafka2011.errors import ConfigError, ConnectionFailed, IllegalTopicName
from kafka2011.producer.batch import Lane
from kafka2011.producer.partitioner import Key, Partitioner
from kafka2011.producer.routing import Router
from kafka2011.producer.sender import Sender
from kafka2011.types import BrokerAddress, BrokerPartition, is_legal_name

_STICKY_MESSAGES = 1000
_AVOID_S = 5.0


class Route:
    """A lane, the sender of its broker, and for how many more messages a random choice of it is kept."""

    __slots__ = ("lane", "left", "sender")

    def __init__(self, lane: Lane, sender: Sender) -> None:
        self.lane, self.sender, self.left = lane, sender, 0


class Routes:
    """The routes of one producer. Thread: any; a race costs a repeated choice, never a message."""

    def __init__(
        self,
        router: Router,
        partitioner: Partitioner,
        batch_size: int,
        sender_of: Callable[[BrokerAddress], Sender],
        clock: Clock,
    ) -> None:
        self.sticky: dict[str, Route] = {}
        """The route of a topic's messages without a key, for as long as a random choice is kept."""
        self._router = router
        self._partitioner = partitioner
        self._batch_size = batch_size
        self._sender_of = sender_of
        self._clock = clock
        self._known: dict[tuple[str, BrokerPartition, bool], Route] = {}
        self._avoided: dict[BrokerAddress, float] = {}

    def choose(self, topic: str, key: Key | None) -> Route:
        """Pick a partition: by key, or at random.

        Where the broker picks the partition (-1), our choice is only which broker, and it is kept for a while:
        changing the connection with every message would cut all batches to pieces.
        """
        candidates = self._candidates(topic)
        if key is not None and candidates[0].partition >= 0:
            n = len(candidates)
            index = self._partitioner(key, n)
            if not 0 <= index < n:
                raise ConfigError(f"the partitioner returned {index} for {n} partitions; 0 to {n - 1} are possible")
            return self._route(topic, candidates[index], keyed=True)
        if self._avoided:
            candidates = self._preferred(candidates)
        route = self._route(topic, candidates[int(random.random() * len(candidates))], keyed=False)
        if route.lane.partition < 0 or len(candidates) == 1:
            route.left = max(self._batch_size, _STICKY_MESSAGES)
            self.sticky[topic] = route
        return route

    def _candidates(self, topic: str) -> Sequence[BrokerPartition]:
        candidates = self._router.partitions(topic)
        if not candidates:
            self._router.refresh()
            candidates = self._router.partitions(topic)
        if not candidates:
            raise ConnectionFailed(f"no broker is alive that could take {topic!r}; nothing was sent, try again later")
        return candidates

    def _preferred(self, candidates: Sequence[BrokerPartition]) -> Sequence[BrokerPartition]:
        """Those whose broker did not fail just now, or all if there are no others."""
        now = self._clock.monotonic()
        self._avoided = {address: until for address, until in self._avoided.items() if until > now}
        return [c for c in candidates if self._address(c) not in self._avoided] or candidates

    def _address(self, chosen: BrokerPartition) -> BrokerAddress | None:
        """Where a candidate's broker is; None if it went away since we asked for candidates."""
        try:
            return self._router.address(chosen.broker_id)
        except ConnectionFailed:
            return None

    def _route(self, topic: str, chosen: BrokerPartition, keyed: bool) -> Route:
        """The route to a partition, through its broker as it is known now."""
        address = self._router.address(chosen.broker_id)
        route = self._known.get((topic, chosen, keyed))
        if route is None or route.lane.address != address:
            if not is_legal_name(topic):
                raise IllegalTopicName(f"{topic!r} cannot be a topic: letters, digits, '.', '_' and '-', at most 200")
            route = Route(Lane(address, topic, chosen.partition, keyed=keyed), self._sender_of(address))
            self._known[topic, chosen, keyed] = route
        return route

    def elsewhere(self, lane: Lane, attempts: int) -> Iterator[Route]:
        """The other routes for messages whose broker just failed, in random order."""
        self._avoided[lane.address] = self._clock.monotonic() + _AVOID_S
        self.sticky.clear()
        self._router.refresh()
        found = self._router.partitions(lane.topic)
        for chosen in random.sample(found, len(found)):
            address = self._address(chosen)
            # A key stays with its partition; it may follow it to the broker's new address.
            same = (chosen.broker_id, chosen.partition) == (lane.address.broker_id, lane.partition)
            if address is not None and address != lane.address and (same or not lane.keyed):
                other = Lane(address, lane.topic, chosen.partition, keyed=lane.keyed, attempts=attempts)
                yield Route(other, self._sender_of(address))
