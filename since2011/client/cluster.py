"""What a member knows of the cluster: topics, where their partitions are read, who coordinates.

See docs/modern-port.md, docs/group-protocol.md. The modern port numbers a topic's partitions 0 … n-1 across brokers;
the 2011 port of each broker numbers its own. The i-th partition held by a broker is that broker's i-th.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka2011.errors import ConnectionFailed, Kafka2011Error
from kafka2011.types import BrokerPartition, TopicPartition
from since2011.client.connection import ModernConnection
from since2011.client.errors import GroupError
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

METADATA_VERSION = 12


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one moment."""

    places: Mapping[TopicPartition, BrokerPartition]
    """Where each partition is read on the 2011 side."""
    ids: Mapping[str, uuid.UUID]
    brokers: Mapping[int, tuple[str, int]]
    """Modern addresses."""

    @property
    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys(self.ids, 0)
        for partition in self.places:
            counts[partition.topic] += 1
        return counts

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, known in self.ids.items() if known == topic_id), None)


class Cluster:
    """Asks whichever bootstrap address answers. Thread: one at a time."""

    def __init__(self, bootstrap: Iterable[tuple[str, int]], *, client_id: str, timeout_s: float = 30.0) -> None:
        self._bootstrap = list(bootstrap)
        self._client_id, self._timeout_s = client_id, timeout_s
        self._connection: ModernConnection | None = None

    def topics(self, names: Iterable[str] | None) -> Topics:
        """What the brokers say of these topics, or of all."""
        wanted = None if names is None else [Struct(topic_id=NO_UUID, name=name) for name in sorted(names)]
        answer = self._ask(ApiKey.METADATA, METADATA_VERSION, Struct(topics=wanted, auto_create=True))
        places: dict[TopicPartition, BrokerPartition] = {}
        ids: dict[str, uuid.UUID] = {}
        for topic in answer.topics:
            if topic.error or topic.name is None:
                continue  # not there yet: asked again later
            ids[topic.name] = topic.topic_id
            seen: dict[int, int] = {}
            for each in sorted(topic.partitions, key=lambda p: int(p.index)):
                # The only replica, not the leader: a broker that is away still holds its partitions.
                broker_id = each.replicas[0]
                number = seen[broker_id] = seen.get(broker_id, -1) + 1
                places[TopicPartition(topic.name, each.index)] = BrokerPartition(broker_id, number)
        return Topics(places, ids, {each.id: (each.host, each.port) for each in answer.brokers})

    def coordinator(self, group: str) -> ModernConnection:
        """A new connection to whoever coordinates ``group`` now."""
        answer = self._ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0))
        if answer.error:
            error = GroupError(f"looking for the coordinator of {group}", answer.error, "try again")
            raise ConnectionFailed(str(error))
        return self._connect(answer.host, answer.port)

    def twin(self) -> Cluster:
        """The same cluster for another thread."""
        return Cluster(self._bootstrap, client_id=self._client_id, timeout_s=self._timeout_s)

    def broker(self, host: str, port: int) -> ModernConnection:
        """A new connection to one broker."""
        return self._connect(host, port)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, key: ApiKey, version: int, body: Struct) -> Struct:
        failure: Kafka2011Error | None = None
        for host, port in self._bootstrap:
            try:
                if self._connection is None:
                    self._connection = self._connect(host, port)
                return self._connection.ask(key, version, body)
            except (ConnectionFailed, GroupError) as error:
                failure = error
                self.close()
        raise failure or ConnectionFailed("no bootstrap address was given; name at least one HOST:PORT")

    def _connect(self, host: str, port: int) -> ModernConnection:
        return ModernConnection(host, port, client_id=self._client_id, timeout_s=self._timeout_s)


def check(what: str, error: int, hint: str = "") -> None:
    """Raise GroupError unless ``error`` is 0."""
    if error != ErrorCode.NONE:
        raise GroupError(what, error, hint)
