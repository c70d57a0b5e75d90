"""Tell every partition of a transaction how it ended: to the log directly where it is led here, else to its leader.

    0                          the partition has its marker
    3 and nobody knows it      deleted: it needs none
    3, 6, 7, 19, 20, 56        tried again, with whoever leads then, for ever
    47, 52                     somebody newer took over; nothing more is sent for this transaction
    35, 43                     it cannot hold one: as if deleted

One request at a time is on its way to another broker; what is to be said meanwhile waits and goes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafka2011.broker.reactor import DelayedCall
from kafka2011.types import TopicPartition
from since2011.server.markers import Ending
from since2011.transactions.broker_channel import BrokerChannel
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

AGAIN_S = 0.1
_DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
_SUPERSEDED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


@dataclass(frozen=True, slots=True)
class Decision:
    """How the transaction of an id ended, and who says so."""

    id: str
    number: int
    """The partition of the state topic it was decided in."""
    ending: Ending


Told = Callable[[Decision, TopicPartition], None]


class MarkerSender:
    """Thread: reactor."""

    def __init__(self, modern: ModernBroker, told: Told) -> None:
        """``told``: called when a partition needs to be told nothing more."""
        self._modern, self._told = modern, told
        self._untold: dict[Decision, set[TopicPartition]] = {}
        self._channels: dict[int, BrokerChannel] = {}
        self._timers: set[DelayedCall] = set()
        self._stopped = False

    def send(self, decision: Decision, partitions: Iterable[TopicPartition]) -> None:
        """Begin; ends when every partition was told."""
        wanted = set(partitions)
        self._untold[decision] = wanted
        for partition in sorted(wanted):
            self._send(decision, partition)

    def forget(self, number: int) -> None:
        """Another broker coordinates what was decided in this partition of the state topic."""
        for decision in [each for each in self._untold if each.number == number]:
            del self._untold[decision]

    @property
    def n_untold(self) -> int:
        """Partitions that wait for a marker."""
        return sum(len(each) for each in self._untold.values())

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True
        self._untold.clear()
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        for channel in self._channels.values():
            channel.stop()

    # One partition

    def _is_wanted(self, decision: Decision, partition: TopicPartition) -> bool:
        return partition in self._untold.get(decision, ())

    def _send(self, decision: Decision, partition: TopicPartition) -> None:
        if not self._is_wanted(decision, partition):
            return
        modern = self._modern
        image = modern.topics.image.partition(partition.topic, partition.partition)
        if image is None:
            self._done(decision, partition)
        elif image.leader == modern.address.broker_id:
            writing = Deferred.fromCoroutine(modern.markers.write(partition, decision.ending))
            self._then(decision, partition, writing)
        elif image.leader in modern.view().brokers:
            self._then(decision, partition, self._channel(image.leader).send(decision.ending, partition))
        else:
            self._later(decision, partition)

    def _channel(self, broker_id: int) -> BrokerChannel:
        if broker_id not in self._channels:
            self._channels[broker_id] = BrokerChannel(self._modern, broker_id)
        return self._channels[broker_id]

    def _then(self, decision: Decision, partition: TopicPartition, sending: Deferred[ErrorCode]) -> None:
        def answered(error: ErrorCode) -> None:
            if error in _SUPERSEDED:
                self._untold.pop(decision, None)
            elif error in _DONE:
                self._done(decision, partition)
            else:
                self._later(decision, partition)

        def failed(_: Failure) -> None:
            self._later(decision, partition)

        sending.addCallbacks(answered, failed)

    def _later(self, decision: Decision, partition: TopicPartition) -> None:
        if self._stopped or not self._is_wanted(decision, partition):
            return

        def again() -> None:
            self._timers.discard(timer)
            self._send(decision, partition)

        timer = self._modern.reactor.callLater(AGAIN_S, again)
        self._timers.add(timer)

    def _done(self, decision: Decision, partition: TopicPartition) -> None:
        left = self._untold.get(decision)
        if left is None or partition not in left:
            return
        left.discard(partition)
        if not left:
            del self._untold[decision]
        self._told(decision, partition)
