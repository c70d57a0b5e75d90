"""Ask a cluster's brokers about transactions, and end one that hangs, as an administrator does.

What is refused is an ``AdminError``. Thread: one at a time.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

from since2011.client.admin import AdminError
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

_TRANSACTION = 1


class Open(NamedTuple):
    """A transaction a partition knows to be open."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int


class TransactionAdmin:
    """Connections to every broker of a cluster, made when they are needed."""

    def __init__(self, address: str, *, timeout_s: float = 60.0) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            raise AdminError(0, f"{address!r} is no HOST:PORT of a broker's modern port (its modern.port)")
        self._timeout_s = timeout_s
        first = ModernConnection(host.strip("[]"), int(port), client_id="kafka2011", timeout_s=timeout_s)
        self._metadata = first.ask(ApiKey.METADATA, 12, Struct(topics=None, auto_create=False))
        self._connections: dict[int, ModernConnection] = {}
        first.close()

    def __enter__(self) -> TransactionAdmin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for connection in self._connections.values():
            connection.close()

    def _broker(self, number: int) -> ModernConnection:
        if number not in self._connections:
            found = next((each for each in self._metadata.brokers if each.id == number), None)
            if found is None:
                raise AdminError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {number} is away")
            self._connections[number] = ModernConnection(
                found.host, found.port, client_id="kafka2011", timeout_s=self._timeout_s
            )
        return self._connections[number]

    def transactions(self) -> list[tuple[int, Struct]]:
        """Every transactional id with the broker that coordinates it."""
        body = Struct(state_filters=[], producer_id_filters=[], duration_filter=-1)
        found = []
        for broker in self._metadata.brokers:
            answer = self._broker(broker.id).ask(ApiKey.LIST_TRANSACTIONS, 1, body)
            _check(answer.error, f"broker {broker.id} tells nothing of its transactions")
            found += [(broker.id, each) for each in answer.transactions]
        return sorted(found, key=lambda one: str(one[1].transactional_id))

    def describe(self, name: str) -> Struct:
        """One transactional id."""
        any_broker = self._broker(self._metadata.brokers[0].id)
        where = any_broker.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=name, key_type=_TRANSACTION))
        _check(where.error, f"nobody coordinates {name} just now")
        answer = self._broker(where.node).ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, Struct(transactional_ids=[name]))
        found: Struct = answer.transactions[0]
        _check(found.error, f"there is nothing to tell of {name}")
        return found

    def open(self) -> list[Open]:
        """What partitions know of open transactions."""
        led: dict[int, dict[str, list[int]]] = {}
        for topic in self._metadata.topics:
            for partition in topic.partitions:
                if partition.leader >= 0:
                    led.setdefault(partition.leader, {}).setdefault(topic.name, []).append(partition.index)
        found = []
        for broker, topics in sorted(led.items()):
            rows = [Struct(name=name, partitions=numbers) for name, numbers in topics.items()]
            answer = self._broker(broker).ask(ApiKey.DESCRIBE_PRODUCERS, 0, Struct(topics=rows))
            found += [
                Open(
                    topic.name, one.index, each.producer_id, each.producer_epoch, each.coordinator_epoch,
                    each.current_txn_start_offset, each.last_timestamp,
                )
                for topic in answer.topics
                for one in topic.partitions
                for each in one.active_producers
                if each.current_txn_start_offset >= 0
            ]  # fmt: skip
        return sorted(found)

    def hanging(self, older_than_ms: int, now_ms: int) -> list[Open]:
        """Open for longer than any transaction may be, and not part of one that a coordinator knows."""
        known = {each.producer_id: each.transactional_id for _, each in self.transactions()}
        return [
            one
            for one in self.open()
            if one.last_timestamp <= now_ms - older_than_ms and not self._is_known(one, known.get(one.producer_id))
        ]

    def _is_known(self, one: Open, name: str | None) -> bool:
        if name is None:
            return False
        topics = self.describe(name).topics
        return any(topic.name == one.topic and one.partition in topic.partitions for topic in topics)

    def abort(self, one: Open) -> None:
        """Write an ABORT marker where a transaction hangs."""
        topic = next(each for each in self._metadata.topics if each.name == one.topic)
        leader = next(each.leader for each in topic.partitions if each.index == one.partition)
        marker = Struct(
            producer_id=one.producer_id, epoch=one.epoch, commit=False, coordinator_epoch=max(one.coordinator_epoch, 0),
            topics=[Struct(name=one.topic, partitions=[one.partition])],
        )  # fmt: skip
        answer = self._broker(leader).ask(ApiKey.WRITE_TXN_MARKERS, 1, Struct(markers=[marker]))
        _check(answer.markers[0].topics[0].partitions[0].error, f"{one.topic}-{one.partition} took no marker")


def _check(error: int, otherwise: str) -> None:
    if error:
        known = ErrorCode(error).name.lower() if error in ErrorCode._value2member_map_ else "unknown"
        raise AdminError(error, f"{otherwise}: {known} ({error})")
