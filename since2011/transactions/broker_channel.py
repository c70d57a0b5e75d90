"""A way to another broker: markers for the partitions it leads, and questions about transactions it coordinates.

A blocking connection in a thread of its own: one request at a time, kept open, made anew after a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafka2011.broker.long_work import LongWork
from kafka2011.errors import ConnectionFailed
from kafka2011.types import TopicPartition
from since2011.client.connection import ModernConnection
from since2011.server.markers import Ending
from since2011.transactions.transaction import by_topic
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

_MARKERS_VERSION, _VERIFY_VERSION = 1, 4
_TIMEOUT_S = 30.0


class BrokerLink:
    """A connection to one broker. Thread: the worker's."""

    def __init__(self) -> None:
        self._connection: ModernConnection | None = None
        self._place: tuple[str, int] | None = None

    def ask(self, place: tuple[str, int], key: ApiKey, version: int, body: Struct) -> Struct:
        """Ask the broker at ``place``. Raises Kafka2011Error."""
        if self._connection is None or self._place != place:
            self.close()
            self._connection = ModernConnection(*place, client_id="transactions", timeout_s=_TIMEOUT_S)
            self._place = place
        try:
            return self._connection.ask(key, version, body)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class BrokerChannel:
    """Thread: reactor."""

    def __init__(self, modern: ModernBroker, broker_id: int) -> None:
        self._modern, self._broker_id = modern, broker_id
        self._link = BrokerLink()
        self._worker = LongWork(modern.reactor, f"transactions-{broker_id}")
        self._worker.start()
        self._waiting: list[tuple[Ending, TopicPartition, Deferred[ErrorCode]]] = []
        self._busy = False

    def stop(self) -> None:
        """Send nothing more."""
        self._waiting.clear()
        self._worker.stop()

    def ask(self, key: ApiKey, version: int, body: Struct) -> Deferred[Struct]:
        """Ask this broker; fails with Kafka2011Error."""
        address = self._modern.view().brokers.get(self._broker_id)
        if address is None:
            failed: Deferred[Struct] = Deferred()
            failed.errback(ConnectionFailed(f"broker {self._broker_id} is away"))
            return failed
        place = (address.host, address.port)
        return self._worker.do(lambda: self._link.ask(place, key, version, body))

    # Markers

    def send(self, ending: Ending, partition: TopicPartition) -> Deferred[ErrorCode]:
        """Fire with the leader's answer."""
        answer: Deferred[ErrorCode] = Deferred()
        self._waiting.append((ending, partition, answer))
        if not self._busy:
            self._next()
        return answer

    def _next(self) -> None:
        sent, self._waiting = self._waiting, []
        self._busy = bool(sent)
        if not sent:
            return
        of: dict[Ending, list[TopicPartition]] = {}
        for ending, partition, _ in sent:
            of.setdefault(ending, []).append(partition)
        rows = [
            Struct(
                producer_id=ending.producer_id,
                epoch=ending.epoch,
                commit=ending.commit,
                topics=[Struct(name=name, partitions=numbers) for name, numbers in by_topic(partitions).items()],
                coordinator_epoch=ending.coordinator_epoch,
            )
            for ending, partitions in of.items()
        ]
        asking = self.ask(ApiKey.WRITE_TXN_MARKERS, _MARKERS_VERSION, Struct(markers=rows))
        asking.addCallbacks(self._answered, self._failed, callbackArgs=(sent,), errbackArgs=(sent,))

    def _answered(self, answer: Struct, sent: list[tuple[Ending, TopicPartition, Deferred[ErrorCode]]]) -> None:
        errors = {
            (marker.producer_id, TopicPartition(topic.name, one.index)): one.error
            for marker in answer.markers
            for topic in marker.topics
            for one in topic.partitions
        }
        for ending, partition, deferred in sent:
            code = errors.get((ending.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
            known = code in ErrorCode._value2member_map_
            deferred.callback(ErrorCode(code) if known else ErrorCode.UNKNOWN_SERVER_ERROR)
        self._next()

    def _failed(self, failure: Failure, sent: list[tuple[Ending, TopicPartition, Deferred[ErrorCode]]]) -> None:
        for _, _, deferred in sent:
            deferred.errback(failure)
        self._next()

    # Questions (KIP-890)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: list[TopicPartition]
    ) -> Deferred[dict[TopicPartition, ErrorCode]]:
        """Ask whether these are part of a transaction this broker coordinates; fails with Kafka2011Error."""
        topics = [Struct(name=name, partitions=numbers) for name, numbers in by_topic(partitions).items()]
        row = Struct(
            transactional_id=transactional_id, producer_id=producer_id, epoch=epoch, verify_only=True, topics=topics
        )
        asking = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, _VERIFY_VERSION, Struct(transactions=[row]))
        return asking.addCallback(_verdicts, partitions)


def _verdicts(answer: Struct, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    if answer.error:
        return dict.fromkeys(partitions, ErrorCode(answer.error))
    found = {
        TopicPartition(topic.name, one.index): ErrorCode(one.error)
        for result in answer.results
        for topic in result.topics
        for one in topic.partitions
    }
    return {each: found.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in partitions}
