"""Why a topic cannot be made, changed or removed, each with the number today's protocol gives it."""

from __future__ import annotations

from typing import ClassVar

from kafka2011.errors import Kafka2011Error


class TopicError(Kafka2011Error):
    """A request about topics or settings that is refused."""

    code: ClassVar[int] = -1

    @property
    def error_code(self) -> int:
        """What a client is told (``since2011.wire.refusals``)."""
        return self.code


class UnknownTopic(TopicError):
    """There is no such topic."""

    code = 3


class InvalidTopic(TopicError):
    """A name no topic may have."""

    code = 17


class TopicExists(TopicError):
    """There is a topic of this name."""

    code = 36


class InvalidPartitions(TopicError):
    """A number of partitions that cannot be."""

    code = 37


class InvalidReplicationFactor(TopicError):
    """More replicas than can be."""

    code = 38


class InvalidAssignment(TopicError):
    """Partitions cannot be placed as asked."""

    code = 39


class InvalidSetting(TopicError):
    """A setting there is not, or a value it cannot have."""

    code = 40


class InvalidRequest(TopicError):
    """A request that makes no sense."""

    code = 42


class TooMany(TopicError):
    """More topics or partitions than this broker may hold."""

    code = 44
