"""A cluster whose coordinators die: real brokers on a real ZooKeeper, asked with our own codec."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.group_protocol.conftest import QUICK
from tests.waiting import until

MOVING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
"""What a client is told while a group has no coordinator that knows its offsets; it asks again."""


class FailoverCluster:
    """Brokers 1 to n. The topic ``t`` is on the last one only, which is never killed; groups have one replica each."""

    def __init__(
        self, zk_connect: str, directory: Path, n_brokers: int = 2, *, first_connect: str = "", **options: object
    ) -> None:
        """``first_connect``: broker 1 reaches ZooKeeper by this way."""
        alone = {"offsets.topic.replication.factor": 1}
        settings = QUICK | alone | {"zk.connect": zk_connect, "zk.sessiontimeout.ms": 2000} | options
        self.brokers = {
            number: BrokerProcess(directory / str(number), settings | {"brokerid": number})
            for number in range(1, n_brokers + 1)
        }
        if first_connect:
            self.brokers[1].options["zk.connect"] = first_connect
        self.ends = dict.fromkeys(range(4), 0)
        """Where each partition of the topic ends."""
        self._stack = ExitStack()

    def __enter__(self) -> FailoverCluster:
        for broker in self.brokers.values():
            self._stack.enter_context(broker)
        self.publish([b"first"])
        for number in self.brokers:
            until(lambda number=number: self._is_whole(number), f"broker {number} sees the others and the topic")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.modern_port}" for broker in self.brokers.values())

    def publish(self, payloads: list[bytes], partition: int = 0) -> None:
        """To the last broker, over its 2011 port."""
        last = self.brokers[len(self.brokers)]
        data = encode_set(payloads)
        with BrokerConnection(last.host, last.port) as connection:
            connection.produce("t", partition, data)
        self.ends[partition] += len(data)

    def _is_whole(self, number: int) -> bool:
        body = Struct(topics=[Struct(name="t")], auto_create=False)
        answer = self._ask(number, ApiKey.METADATA, 8, body)
        return len(answer.brokers) == len(self.brokers) and len(answer.topics[0].partitions) == 4

    def _ask(self, number: int, key: ApiKey, version: int, body: Struct) -> Struct:
        broker = self.brokers[number]
        connection = ModernConnection(broker.host, broker.modern_port or 0, client_id="t")
        try:
            return connection.ask(key, version, body)
        finally:
            connection.close()

    def coordinator(self, group: str, asked: int | None = None) -> int:
        """Whom a broker (the last one) names."""
        body = Struct(key=group, key_type=0)
        found: int = self._ask(asked or len(self.brokers), ApiKey.FIND_COORDINATOR, 2, body).node
        return found

    def find(self, group: str, asked: int) -> int:
        """The error with which a broker answers who coordinates a group."""
        error: int = self._ask(asked, ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0)).error
        return error

    def group_of(self, number: int, name: str = "group") -> str:
        """A group this broker coordinates."""
        return next(group for n in range(1000) if self.coordinator(group := f"{name}-{n}") == number)

    def commit(self, number: int, group: str, offset: int) -> int:
        """Commit for a group without members; the error."""
        rows = [Struct(name="t", partitions=[Struct(index=0, offset=offset, metadata="note")])]
        answer = self._ask(number, ApiKey.OFFSET_COMMIT, 7, Struct(group=group, member="", topics=rows))
        error: int = answer.topics[0].partitions[0].error
        return error

    def fetch(self, number: int, group: str) -> tuple[int, int, str]:
        """Error, committed offset and note of ``t`` 0, as one broker says."""
        body = Struct(group=group, topics=[Struct(name="t", partitions=[0])])
        answer = self._ask(number, ApiKey.OFFSET_FETCH, 5, body)
        if answer.error:
            return answer.error, -1, ""
        row = answer.topics[0].partitions[0]
        return 0, row.offset, row.metadata

    def committed(self, number: int, group: str) -> tuple[int, str]:
        """The first offset and note this broker hands out; before that it says that it is not ready, only that."""

        def answer() -> tuple[int, int, str] | None:
            found = self.fetch(number, group)
            assert found[0] in (0, *MOVING)
            return None if found[0] else found

        _, offset, note = until(answer, f"broker {number} speaks for {group}")
        return offset, note
