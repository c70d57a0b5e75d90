"""Ask the controller to move replicas and to change leaders, as an administrator does.

Whatever broker is named, the request goes to the controller: it is asked for first. What is refused is an
``AdminError`` with a sentence. Thread: one at a time.

The paper's answer (§3.2): a partition stays where it was first written; nobody can be asked to move it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType

from kafka2011.types import TopicPartition
from since2011.client.admin import AdminError
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

_TIMEOUT_MS = 30_000
PREFERRED, UNCLEAN = 0, 1


@dataclass(frozen=True, slots=True)
class Move:
    """A move under way."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a wish about one partition; ``error`` 0: it is granted."""

    partition: TopicPartition
    error: int
    sentence: str | None


class Replicas:
    """A connection to the controller of the cluster that ``address``, the modern port of any broker, is in."""

    def __init__(self, address: str, *, timeout_s: float = 60.0) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise AdminError(ErrorCode.INVALID_REQUEST, f"{address!r} is no HOST:PORT of a broker's modern port")
        first = ModernConnection(host.strip("[]"), int(port), client_id="kafka2011", timeout_s=timeout_s)
        try:
            cluster = first.ask(ApiKey.METADATA, 9, Struct(topics=[], auto_create=False))
        finally:
            first.close()
        self.brokers: tuple[int, ...] = tuple(sorted(broker.id for broker in cluster.brokers))
        found = next((broker for broker in cluster.brokers if broker.id == cluster.controller), None)
        if found is None:
            raise AdminError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller just now; try again in a moment")
        self._connection = ModernConnection(found.host, found.port, client_id="kafka2011", timeout_s=timeout_s)

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._connection.close()

    def move(self, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> list[Verdict]:
        """Begin to move partitions to these brokers; None cancels the move under way."""
        topics: dict[str, list[Struct]] = {}
        for key, target in wanted.items():
            row = Struct(partition_index=key.partition, replicas=None if target is None else list(target))
            topics.setdefault(key.topic, []).append(row)
        rows = [Struct(name=name, partitions=partitions) for name, partitions in topics.items()]
        body = Struct(timeout_ms=_TIMEOUT_MS, topics=rows)
        answer = self._connection.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, body)
        _check(answer.error, answer.error_message)
        return [
            Verdict(TopicPartition(topic.name, row.partition_index), row.error, row.error_message)
            for topic in answer.responses
            for row in topic.partitions
        ]

    def moves(self) -> list[Move]:
        """The moves under way."""
        body = Struct(timeout_ms=_TIMEOUT_MS, topics=None)
        answer = self._connection.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, body)
        _check(answer.error, answer.error_message)
        return [
            Move(
                TopicPartition(topic.name, row.partition_index),
                tuple(row.replicas),
                tuple(row.adding_replicas),
                tuple(row.removing_replicas),
            )
            for topic in answer.topics
            for row in topic.partitions
        ]

    def elect(self, kind: int, partitions: Iterable[TopicPartition] | None) -> list[Verdict]:
        """Let the preferred replicas lead, or with ``UNCLEAN`` any where none does; None: everywhere."""
        topics: dict[str, list[int]] = {}
        for key in partitions or ():
            topics.setdefault(key.topic, []).append(key.partition)
        asked = None
        if partitions is not None:
            asked = [Struct(topic=name, partitions=indexes) for name, indexes in topics.items()]
        body = Struct(election_type=kind, topic_partitions=asked, timeout_ms=_TIMEOUT_MS)
        answer = self._connection.ask(ApiKey.ELECT_LEADERS, 2, body)
        _check(answer.error, None)
        return [
            Verdict(TopicPartition(result.topic, row.partition_id), row.error, row.error_message)
            for result in answer.results
            for row in result.partitions
        ]


def _check(error: int, message: str | None) -> None:
    if error == ErrorCode.NOT_CONTROLLER:
        raise AdminError(error, "the controller has changed just now; try again")
    if error:
        raise AdminError(error, message or f"the controller refused: error {error}")
