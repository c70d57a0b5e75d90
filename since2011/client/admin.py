"""Ask a broker's modern port about topics and settings, as an administrator does.

    with Admin("127.0.0.1:9192") as admin:
        admin.create("clicks", partitions=3, settings={"retention.ms": "3600000"})
        admin.describe(["clicks"])

What is refused is an ``AdminError`` with the broker's own sentence. Thread: one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from uuid import UUID

from kafka2011.errors import ConnectionFailed, Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

_TOPIC = 2
_SET, _DELETE = 0, 1
_TIMEOUT_MS = 30_000
_OF_TOPIC = 1


class AdminError(Kafka2011Error):
    """A broker refused; ``error`` says why in a number, the text in words."""

    def __init__(self, error: int, sentence: str) -> None:
        self.error = error
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition as Metadata tells of it."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic: its era, its partitions, the settings that are its own."""

    name: str
    era: str
    """``modern`` or ``2011``."""
    topic_id: UUID
    internal: bool
    partitions: tuple[PartitionRow, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


class Admin:
    """A connection to one broker's modern port, which passes nothing on: name a broker of the cluster."""

    def __init__(self, address: str, *, timeout_s: float = 60.0) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            raise ConnectionFailed(f"{address!r} is no HOST:PORT of a broker's modern port (its modern.port)")
        self._connection = ModernConnection(host.strip("[]"), int(port), client_id="kafka2011", timeout_s=timeout_s)

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # -- topics ---------------------------------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None = None) -> list[TopicRow]:
        """These topics, or all; AdminError for one there is not."""
        wanted = None if names is None else [Struct(topic_id=NO_UUID, name=name) for name in names]
        answer = self._connection.ask(ApiKey.METADATA, 12, Struct(topics=wanted, auto_create=False))
        for topic in answer.topics:
            if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise AdminError(topic.error, f"there is no topic {topic.name}; see: kafka2011 topics list")
            if topic.error == ErrorCode.INVALID_TOPIC:
                raise AdminError(topic.error, f"{topic.name!r} cannot be a topic")
        found = sorted((topic for topic in answer.topics if not topic.error), key=lambda topic: str(topic.name))
        settings = self._settings_of([topic.name for topic in found])
        return [_row(topic, settings[topic.name]) for topic in found]

    def create(
        self,
        name: str,
        *,
        partitions: int = -1,
        replicas: int = -1,
        settings: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> int:
        """Make a topic; how many partitions it has."""
        topic = Struct(
            name=name,
            partitions=partitions,
            replication=replicas,
            assignments=[],
            configs=[Struct(name=name, value=value) for name, value in (settings or {}).items()],
        )
        body = Struct(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=validate_only)
        (made,) = self._connection.ask(ApiKey.CREATE_TOPICS, 7, body).topics
        _check(made.error, made.message, f"{name} was not created")
        n: int = made.num_partitions
        return n

    def delete(self, name: str) -> None:
        """Remove a topic and its records."""
        topic = Struct(name=name, topic_id=NO_UUID)
        body = Struct(topics=[topic], topic_names=[], timeout_ms=_TIMEOUT_MS)
        (gone,) = self._connection.ask(ApiKey.DELETE_TOPICS, 6, body).responses
        _check(gone.error, gone.error_message, f"{name} was not deleted")

    def grow(self, name: str, count: int) -> None:
        """Give a topic so many partitions in all."""
        topic = Struct(name=name, count=count, assignments=None)
        body = Struct(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=False)
        (grown,) = self._connection.ask(ApiKey.CREATE_PARTITIONS, 3, body).results
        _check(grown.error, grown.error_message, f"{name} did not grow")

    def alter(self, name: str, settings: Mapping[str, str], deleted: Iterable[str] = ()) -> None:
        """Change some of a topic's settings; those deleted go back to the default."""
        configs = [Struct(name=n, config_operation=_SET, value=value) for n, value in settings.items()]
        configs += [Struct(name=n, config_operation=_DELETE, value=None) for n in deleted]
        resource = Struct(resource_type=_TOPIC, resource_name=name, configs=configs)
        body = Struct(resources=[resource], validate_only=False)
        (altered,) = self._connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).responses
        _check(altered.error, altered.error_message, f"{name} was not altered")

    def _settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """What each topic has set itself, and its format if that is 2011's."""
        resources = [Struct(resource_type=_TOPIC, resource_name=name, configuration_keys=None) for name in names]
        body = Struct(resources=resources, include_synonyms=False, include_documentation=False)
        answer = self._connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, body)
        return {
            result.resource_name: {
                config.name: config.value for config in result.configs if config.config_source == _OF_TOPIC
            }
            for result in answer.results
        }


def _row(topic: Struct, settings: dict[str, str]) -> TopicRow:
    era = settings.pop("log.format", "modern")
    partitions = tuple(
        PartitionRow(p.index, p.leader, p.leader_epoch, tuple(p.replicas), tuple(p.isr))
        for p in sorted(topic.partitions, key=lambda partition: int(partition.index))
    )
    return TopicRow(topic.name, era, topic.topic_id, topic.internal, partitions, settings)


def _check(error: int, message: str | None, otherwise: str) -> None:
    if error:
        raise AdminError(error, message or f"{otherwise}: error {error}")
