"""A client that says exactly what a test wants said: one socket, our own codec's client half."""

from __future__ import annotations

import socket
from types import TracebackType

from since2011.wire.codec import ApiKey, Struct, decode_response, encode_request
from tests.unit.since2011.server.test_batches import built

PATIENCE_S = 60.0


class WireClient:
    """Send requests and read answers, in whatever order the test says."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._correlation = 0

    def send(self, key: ApiKey, version: int, body: Struct) -> int:
        """Send without waiting; the number to expect in the answer."""
        self._correlation += 1
        self.socket.sendall(b"".join(encode_request(key, version, self._correlation, "wire-test", body)))
        return self._correlation

    def receive(self, key: ApiKey, version: int) -> tuple[int, Struct]:
        """The next answer: its number and body."""
        return decode_response(key, version, self.receive_frame())

    def receive_frame(self) -> bytes:
        """The next answer as bytes; ConnectionError when the broker closed."""
        return self._take(int.from_bytes(self._take(4), "big"))

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("closed by the broker")
            data += more
        return data

    def ask(self, key: ApiKey, version: int, body: Struct) -> Struct:
        """Send and wait."""
        number = self.send(key, version, body)
        answered, answer = self.receive(key, version)
        assert number == answered
        return answer

    def is_closed(self) -> bool:
        """Wait for the broker to close; anything it sends instead fails the test."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # The requests tests need most

    def produce(
        self, topic: str, values: list[bytes | None], *, acks: int = -1, producer: tuple[int, int, int] = (-1, -1, -1),
        partition: int = 0, version: int = 7,
    ) -> Struct:  # fmt: skip
        """Produce one batch and return the partition's answer."""
        body = produce_body(topic, built(values, producer=producer), acks=acks, partition=partition)
        return self.ask(ApiKey.PRODUCE, version, body).topics[0].partitions[0]

    def fetch(self, topic: str, offset: int, *, max_wait_ms: int = 0, max_bytes: int = 1 << 20) -> Struct:
        """Fetch from one partition and return its answer."""
        body = fetch_body(topic, offset, max_wait_ms=max_wait_ms, max_bytes=max_bytes)
        return self.ask(ApiKey.FETCH, 11, body).topics[0].partitions[0]

    def end(self, topic: str) -> int:
        """The end of partition 0."""
        return self.offset_at(topic, -1)

    def offset_at(self, topic: str, timestamp: int) -> int:
        """ListOffsets for partition 0."""
        body = Struct(topics=[Struct(name=topic, partitions=[Struct(index=0, timestamp=timestamp)])])
        found: int = self.ask(ApiKey.LIST_OFFSETS, 5, body).topics[0].partitions[0].offset
        return found

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def produce_body(topic: str, records: bytes, *, acks: int = -1, partition: int = 0) -> Struct:
    """A Produce request with one partition."""
    rows = [Struct(index=partition, records=records)]
    return Struct(transactional_id=None, acks=acks, timeout_ms=30_000, topics=[Struct(name=topic, partitions=rows)])


def fetch_body(
    topic: str, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1, max_bytes: int = 1 << 20, epoch: int = -1
) -> Struct:
    """A Fetch request with one partition."""
    rows = [Struct(index=0, offset=offset, max_bytes=max_bytes, leader_epoch=epoch)]
    return Struct(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=50 << 20, isolation=0, session_id=0, session_epoch=-1,
        topics=[Struct(name=topic, partitions=rows)], forgotten=[], rack="",
    )  # fmt: skip
