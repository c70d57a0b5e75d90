"""Those who write and read while a cluster is struck, each noting what it was promised."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from confluent_kafka import KafkaException, Message, Producer

from benchmarks.failover.judge import Stands
from kafka2011.errors import Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.record_batch import headers
from since2011.wire.records import decode_records

OFFSETS_VERSION, FETCH_VERSION, METADATA_VERSION = 5, 11, 9


class Writer(threading.Thread):
    """Sends values one after the other and notes which were acknowledged where, and when."""

    def __init__(
        self, name: str, bootstrap: str, topic: str, n_partitions: int, over: threading.Event, *, acks: str = "all"
    ) -> None:
        super().__init__(daemon=True, name=name)
        self._topic, self._n_partitions, self._over = topic, n_partitions, over
        settings = {"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 1, "message.timeout.ms": 120_000}
        # Values are told apart by their names; a value that is stored twice stands at two offsets.
        # It asks often who leads: what is measured is how long nobody does, not how long a client rests.
        often = {"topic.metadata.refresh.interval.ms": 250, "topic.metadata.refresh.fast.interval.ms": 100}
        self._producer = Producer(settings | often | {"reconnect.backoff.max.ms": 200, "log_level": 0})
        self.acked: list[Stands] = []
        self.times: list[tuple[int, float]] = []
        """Partition and when something in it was acknowledged."""
        self.failed: Counter[str] = Counter()

    def run(self) -> None:
        n = 0
        while not self._over.is_set():
            n += 1
            value = f"{self.name}-{n}".encode()
            try:
                self._producer.produce(self._topic, value, partition=n % self._n_partitions, on_delivery=self._told)
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0.002)
        self._producer.flush(120)

    def _told(self, error: object, message: Message) -> None:
        if error is not None:
            self.failed[str(error)] += 1
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None and offset is not None and isinstance(value, bytes)
        self.acked.append(Stands(partition, offset, value))
        self.times.append((partition, time.monotonic()))

    def longest_wait(self, partition: int, since: float, until: float) -> float:
        """How long nothing was acknowledged in a partition between two moments."""
        times = [since, *(at for p, at in self.times if p == partition and since < at < until), until]
        return max(after - before for before, after in pairwise(times))


class Reader(threading.Thread):
    """Reads one partition from its leader as it is found, and asks where it ends; notes everything it is told."""

    def __init__(self, addresses: Callable[[], list[str]], topic: str, partition: int, over: threading.Event) -> None:
        super().__init__(daemon=True, name=f"reader-{partition}")
        self._addresses, self._topic, self._partition, self._over = addresses, topic, partition, over
        self.read: list[Stands] = []
        self.went_back: list[str] = []
        self._offset = self._end = 0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with_leader = self._leader()
                if with_leader is not None:
                    self._read_from(with_leader)
            except (Kafka2011Error, OSError, KafkaException, EOFError):
                pass  # struck just now; another leads soon
            time.sleep(0.05)

    def _leader(self) -> ModernConnection | None:
        for address in self._addresses():
            host, _, port = address.rpartition(":")
            try:
                connection = ModernConnection(host, int(port), client_id=self.name, timeout_s=5)
            except Kafka2011Error:
                continue
            body = Struct(topics=[Struct(name=self._topic)], auto_create=False)
            answer = connection.ask(ApiKey.METADATA, METADATA_VERSION, body)
            connection.close()
            brokers = {broker.id: broker for broker in answer.brokers}
            for partition in answer.topics[0].partitions:
                if partition.index == self._partition and partition.leader in brokers:
                    leader = brokers[partition.leader]
                    return ModernConnection(leader.host, leader.port, client_id=self.name, timeout_s=5)
        return None

    def _read_from(self, leader: ModernConnection) -> None:
        try:
            while not self._over.is_set():
                asked = Struct(index=self._partition, timestamp=-1)
                body = Struct(isolation=0, topics=[Struct(name=self._topic, partitions=[asked])])
                (told,) = leader.ask(ApiKey.LIST_OFFSETS, OFFSETS_VERSION, body).topics[0].partitions
                if told.error:
                    return
                self._told_end(told.offset, "ListOffsets")
                if not self._fetch(leader):
                    return
        finally:
            leader.close()

    def _fetch(self, leader: ModernConnection) -> bool:
        asked = Struct(index=self._partition, offset=self._offset, max_bytes=1 << 20)
        topics = [Struct(name=self._topic, partitions=[asked])]
        limits = {"max_wait_ms": 200, "min_bytes": 1, "max_bytes": 1 << 20, "isolation": 0}
        body = Struct(session_id=0, topics=topics, forgotten=[], rack="", **limits)
        (got,) = leader.ask(ApiKey.FETCH, FETCH_VERSION, body).topics[0].partitions
        if got.error:
            return False
        self._told_end(got.high_watermark, "Fetch")
        data = got.records or b""
        for position, header in headers(data):
            batch = data[position : position + header.size]
            for record in decode_records(batch, header, lambda codec, raw: raw):
                if record.offset >= self._offset:
                    self.read.append(Stands(self._partition, record.offset, record.value or b""))
            self._offset = max(self._offset, header.next_offset)
        return True

    def _told_end(self, end: int, where: str) -> None:
        if end < self._end:
            self.went_back.append(f"partition {self._partition}: {where} said {end} after {self._end}")
        self._end = max(self._end, end)
