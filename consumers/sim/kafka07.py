"""A consumer of Kafka 0.7 in the simulated world: what its Java and Scala did, step by step, beside our own members.

It is a model of 0.7.1 and 0.7.2, written down from what their consumer does and shares no rule with ``algorithm1``: if
the two ever disagree about who reads what, mixed runs do not settle. What matters to the others of its group:

* partitions and threads are sorted as text; each thread takes P // C, the first P mod C one more;
* it reads the registries, stops, commits, releases, then claims; if one claim fails it takes back all, four times,
  two seconds apart, and then waits for the next change, owning nothing;
* it watches the members of the group and the brokers of the topic, but neither counts of partitions nor its own claims;
* its client repeats an operation until it is answered, in a new session too; so a delete that was meant for its own
  node may hit another's;
* after a lost session it registers under the same id; a node that holds the very text it wants to write counts as its
  own; commits are plain writes.

Paper: §3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from consumers.algorithm1.assign import ThreadId
from consumers.algorithm1.steps import Claim, NewSession, Owned, Progress, Start, Steps, Stop, Wait
from consumers.metrics import ConsumerCounters
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry import paths
from zk_registry.consumers import Subscription, parse_subscription
from zk_registry.operations import (
    Children,
    ConnectionLoss,
    Create,
    Delete,
    Get,
    NodeExists,
    NoNode,
    Operation,
    RegistryError,
    SessionExpired,
    Set,
)

if TYPE_CHECKING:
    from kafka2011.clock import Clock

_TRIES = 4
_BACK_OFF_S = 2.0
_NOWHERE = "h", 9092


class Kafka07:
    """One consumer with one stream of one topic. Same face to the simulator as ``Member``."""

    def __init__(
        self,
        group: str,
        topic: str,
        consumer_id: str,
        *,
        session_id: Callable[[], int],
        clock: Clock,
        random: Random,
        autocommit_s: float,
    ) -> None:
        self.group, self.topic, self.consumer_id = group, topic, consumer_id
        self.counters = ConsumerCounters()
        self.dirty = self.closing = False
        self._session_id, self._clock, self._random, self._autocommit_s = session_id, clock, random, autocommit_s
        self._session = 0
        self._owned: set[str] = set()
        """Names of the partitions whose nodes it counts as its own."""

    def noticed(self, path: str) -> bool:
        """A watch fired."""
        self.dirty = True
        return True

    def life(self) -> Steps[None]:
        """Live until ``closing``."""
        yield from self._register()
        due = self._clock.monotonic() + self._autocommit_s
        while not self.closing:
            if self._session_id() != self._session:
                yield from self._register()
            if self.dirty:
                self.dirty = False
                yield from self._rebalance()
            elif self._clock.monotonic() >= due:
                yield from self._commit((yield Progress()))
                due = self._clock.monotonic() + self._autocommit_s
            else:
                yield Wait(max(0.0, due - self._clock.monotonic()), "for a change, or the next commit")
        # Closing the connection removes its nodes.
        yield from self._commit((yield Stop()))

    def _register(self) -> Steps[None]:
        """Write the id node, under the same id in every session; what it owned in the last one is forgotten."""
        self._owned.clear()
        subscription = Subscription.fixed({self.topic: 1}).encode()
        path = paths.consumer_id(self.group, self.consumer_id)
        while not (yield from self._create(path, subscription)):
            yield Wait(0.2, "somebody else is registered under this id")
        self._session, self.dirty = self._session_id(), True

    def _rebalance(self) -> Steps[None]:
        for _ in range(_TRIES):
            try:
                if (yield from self._attempt()):
                    self.counters.rebalances += 1
                    return
            except RegistryError:
                pass  # "just let this go since another rebalance will be triggered"
            self.counters.failed_attempts += 1
            yield from self._commit((yield Stop()))
            yield Wait(_BACK_OFF_S, "after a failed attempt")
            if self.closing:
                return
        self.counters.gave_up += 1

    def _attempt(self) -> Steps[bool]:
        me = f"{self.consumer_id}-0"
        threads = yield from self._threads()
        if me not in threads:
            return False  # its session is over, and it is not registered in the next one yet
        partitions = yield from self._partitions()
        yield from self._commit((yield Stop()))
        for name in sorted(self._owned):
            yield from self._delete(name)
        self._owned.clear()
        quotient, extra = len(partitions) // len(threads), len(partitions) % len(threads)
        position = threads.index(me)
        first = quotient * position + min(position, extra)
        mine = partitions[first : first + quotient + (0 if position + 1 > extra else 1)]
        offsets = {}
        for name in mine:
            offsets[name] = yield from self._offset(name)
        won = []
        for name in mine:
            if (yield from self._create(f"{paths.owners(self.group, self.topic)}/{name}", me.encode())):
                won.append(name)
        if len(won) < len(mine):
            for name in won:
                yield from self._delete(name)
            return False
        self._owned = set(mine)
        yield Start(tuple(self._claim(name, offsets[name]) for name in mine))
        return True

    def _claim(self, name: str, offset: int | None) -> Claim:
        partition = BrokerPartition.parse(name)
        address = BrokerAddress(partition.broker_id, *_NOWHERE)
        return Claim(Owned(self.topic, partition), ThreadId(self.consumer_id, 0), address, offset)

    def _threads(self) -> Steps[list[str]]:
        threads = []
        for member in (yield from self._ask(Children(paths.consumer_ids(self.group), watch=True))):
            node = yield from self._ask(Get(paths.consumer_id(self.group, member)))
            subscription = parse_subscription(node.value)
            count = 0 if subscription is None else subscription.streams_of(self.topic)
            threads += [f"{member}-{i}" for i in range(count)]
        return sorted(threads)

    def _partitions(self) -> Steps[list[str]]:
        names = []
        for broker in (yield from self._ask(Children(paths.topic(self.topic), watch=True))):
            node = yield from self._ask(Get(f"{paths.topic(self.topic)}/{broker}"))
            names += [f"{broker}-{i}" for i in range(int(node.value))]
        return sorted(names)

    def _offset(self, name: str) -> Steps[int | None]:
        try:
            node = yield from self._ask(Get(paths.offset(self.group, self.topic, BrokerPartition.parse(name))))
        except NoNode:
            return None
        return int(node.value)

    def _commit(self, positions: Mapping[Owned, int]) -> Steps[None]:
        for owned, at in positions.items():
            path, value = paths.offset(self.group, self.topic, owned.partition), str(at).encode()
            try:
                yield from self._ask(Set(path, value))
            except NoNode:
                try:
                    yield from self._ask(Create(path, value, make_parents=True))
                except NodeExists:
                    yield from self._ask(Set(path, value))

    def _delete(self, name: str) -> Steps[None]:
        try:
            yield from self._ask(Delete(f"{paths.owners(self.group, self.topic)}/{name}"))
        except NoNode:
            pass

    def _create(self, path: str, value: bytes) -> Steps[bool]:
        try:
            yield from self._ask(Create(path, value, ephemeral=True, make_parents=True))
            return True
        except NodeExists:
            try:
                return bool((yield from self._ask(Get(path))).value == value)
            except NoNode:
                return False

    def _ask(self, operation: Operation) -> Steps[Any]:
        """Repeat an operation until it is answered, if need be in the next session."""
        while True:
            try:
                return (yield operation)
            except ConnectionLoss:
                yield Wait(self._random.uniform(0.05, 0.2), "the client to be connected again")
            except SessionExpired:
                yield NewSession()
