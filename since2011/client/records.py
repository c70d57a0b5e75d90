"""Write and read records through the modern port: what ``kafka2011 produce -m`` and ``consume -m`` need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kafka2011.errors import ConnectionFailed, Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.compression import compress, decompress
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import headers
from since2011.wire.records import Record, decode_records, encode_records

MAX_INFLATED = 64 << 20
_PRODUCE, _FETCH, _LIST_OFFSETS, _METADATA = 9, 12, 7, 12
LATEST, EARLIEST = -1, -2


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

    def offset(self, partition: int, timestamp: int, *, committed: bool = False) -> int:
        """Where the partition begins (-2), ends (-1), or was at a time; -1 if nothing is that late."""
        row = Struct(index=partition, timestamp=timestamp, leader_epoch=-1)
        topics = [Struct(name=self.topic, partitions=[row])]
        body = Struct(replica_id=-1, isolation=int(committed), topics=topics)
        found = self._leader(partition).ask(ApiKey.LIST_OFFSETS, _LIST_OFFSETS, body).topics[0].partitions[0]
        if found.error:
            raise RequestRefused(f"{self.topic}-{partition}", found.error)
        return int(found.offset)

    def fetch(self, partition: int, offset: int, *, wait_ms: int = 500, committed: bool = False) -> Iterator[Record]:
        """The records from ``offset`` on that are there, or come within the time; those that count, markers not."""
        row = Struct(index=partition, leader_epoch=-1, offset=offset, last_epoch=-1, log_start=-1, max_bytes=1 << 20)
        body = Struct(
            replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, isolation=int(committed), session_id=0,
            session_epoch=-1, topics=[Struct(name=self.topic, partitions=[row])], forgotten=[], rack="",
        )  # fmt: skip
        found = self._leader(partition).ask(ApiKey.FETCH, _FETCH, body).topics[0].partitions[0]
        if found.error:
            raise RequestRefused(f"{self.topic}-{partition} at offset {offset}", found.error)
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted or ())
        return _records(found.records or b"", offset, aborted)

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


def _records(data: bytes, offset: int, aborted: Iterable[tuple[int, int]]) -> Iterator[Record]:
    """What an application sees of fetched bytes: no markers, nothing aborted, nothing before ``offset``."""
    left = list(aborted)
    gone: set[int] = set()
    for position, header in headers(data):
        while left and left[0][0] <= header.last_offset:
            gone.add(left.pop(0)[1])
        if header.control:
            gone.discard(header.producer_id)
            continue
        if header.transactional and header.producer_id in gone:
            continue
        batch = data[position : position + header.size]
        for record in decode_records(batch, header, lambda codec, body: decompress(codec, body, MAX_INFLATED)):
            if record.offset >= offset:
                yield record
