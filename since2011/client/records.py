"""Write records through the modern port: what ``kafka2011 produce -m`` needs."""

from __future__ import annotations

from collections.abc import Sequence

from kafka2011.errors import ConnectionFailed, Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.compression import compress
from since2011.wire.error_codes import ErrorCode
from since2011.wire.records import Record, encode_records

_PRODUCE, _METADATA = 9, 12


class RequestRefused(Kafka2011Error):
    """The broker answered with an error."""

    def __init__(self, what: str, error: int, sentence: str | None = None) -> None:
        self.error = ErrorCode(error)
        super().__init__(f"{what}: {self.error.name}" + (f": {sentence}" if sentence else ""))


class RecordClient:
    """Talks to the leaders of one topic's partitions. Thread: one."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], topic: str, *, client_id: str = "kafka2011") -> None:
        self._bootstrap, self.topic, self._client_id = list(bootstrap), topic, client_id
        self._connections: dict[tuple[str, int], ModernConnection] = {}
        self._leaders: dict[int, tuple[str, int]] = {}

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> RecordClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def partitions(self, *, create: bool) -> list[int]:
        """The partitions of the topic that have a leader; ``create``: make the topic if there is none."""
        body = Struct(topics=[Struct(topic_id=NO_UUID, name=self.topic)], auto_create=create)
        answer = self._anybody().ask(ApiKey.METADATA, _METADATA, body)
        brokers = {broker.id: (broker.host, broker.port) for broker in answer.brokers}
        (topic,) = answer.topics
        if topic.error:
            raise RequestRefused(f"topic {self.topic}", topic.error)
        self._leaders = {one.index: brokers[one.leader] for one in topic.partitions if one.leader in brokers}
        return sorted(self._leaders)

    def produce(self, partition: int, records: Sequence[Record], *, codec: int = 0) -> int:
        """Append records, acknowledged by all replicas; the first one's offset."""
        numbered = [record._replace(offset=number) for number, record in enumerate(records)]
        batch = encode_records(numbered, base_offset=0, attributes=codec, deflate=compress)
        row = Struct(index=partition, records=batch)
        body = Struct(
            transactional_id=None, acks=-1, timeout_ms=30_000, topics=[Struct(name=self.topic, partitions=[row])]
        )
        found = self._leader(partition).ask(ApiKey.PRODUCE, _PRODUCE, body).topics[0].partitions[0]
        if found.error:
            raise RequestRefused(f"{self.topic}-{partition}", found.error, found.error_message)
        return int(found.base_offset)

    def _anybody(self) -> ModernConnection:
        failure: Kafka2011Error = ConnectionFailed("no address was given")
        for address in self._bootstrap:
            try:
                return self._connection(address)
            except ConnectionFailed as error:
                failure = error
        raise failure

    def _leader(self, partition: int) -> ModernConnection:
        if partition not in self._leaders:
            raise RequestRefused(f"{self.topic}-{partition}", ErrorCode.LEADER_NOT_AVAILABLE)
        return self._connection(self._leaders[partition])

    def _connection(self, address: tuple[str, int]) -> ModernConnection:
        found = self._connections.get(address)
        if found is None:
            found = self._connections[address] = ModernConnection(*address, client_id=self._client_id)
        return found
