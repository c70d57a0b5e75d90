"""Write the markers that end a transaction into partitions led here.

The only codes a coordinator of real Kafka takes from whoever answers WriteTxnMarkers are those of ``_TOLD``; any other
would stop its sender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from kafka2011.failpoints import fail_point
from kafka2011.types import TopicPartition
from since2011.log.validation import Prepared
from since2011.wire.error_codes import ErrorCode
from since2011.wire.records import Marker, encode_marker
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

_TOLD = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}

Ended = Callable[[TopicPartition, int, bool], None]
"""Told of a partition, a producer id, and whether its transaction was committed."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one transaction ends."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int


class Markers:
    """Thread: reactor."""

    def __init__(self, modern: ModernBroker) -> None:
        self._modern = modern
        self._ended: list[Ended] = []

    def on_ended(self, callback: Ended) -> None:
        """Call ``callback`` when a marker is safe."""
        self._ended.append(callback)

    async def write(self, partition: TopicPartition, ending: Ending) -> ErrorCode:
        """Append one marker; 0 when it is as safe as acks=all makes it."""
        fail_point("transactions.marker.before")
        modern = self._modern
        marker = Marker(ending.commit, ending.coordinator_epoch)
        data = encode_marker(
            marker,
            producer_id=ending.producer_id,
            producer_epoch=ending.epoch,
            timestamp=modern.clock.wall_ms(),
        )
        try:
            led = modern.topics.led(partition.topic, partition.partition)
            waiting = modern.appending.append(led, Prepared(bytearray(data)))
            if waiting is not None:
                await waiting
        except Kafka2011Error as error:
            code, _ = refusal(error)
            return _TOLD.get(code, ErrorCode.KAFKA_STORAGE_ERROR)
        for callback in self._ended:
            callback(partition, ending.producer_id, ending.commit)
        return ErrorCode.NONE
