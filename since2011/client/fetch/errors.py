"""What a reader of partitions may meet that the application has to decide.

The base says which partition; the others are read on meanwhile.

    FetchError
    ├── NoOffsetForPartition   nothing is committed, and auto.offset.reset is none
    ├── PositionOutOfRange     the log begins later or ends earlier, and auto.offset.reset is none
    │   └── LogTruncated       the log was cut off below the position, and auto.offset.reset is none
    ├── NotAllowed             the broker does not let us read
    └── BatchUnreadable        damaged, or in a codec that is not known: seek past it
"""

from __future__ import annotations

from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition


class FetchError(Kafka2011Error):
    """Base: a partition cannot be read on until the application has decided."""

    def __init__(self, partition: TopicPartition, sentence: str) -> None:
        self.partition = partition
        super().__init__(f"{partition}: {sentence}")


class NoOffsetForPartition(FetchError):
    """There is no committed offset, and no rule where to begin."""


class PositionOutOfRange(FetchError):
    """The position lies outside the log, and there is no rule where to go on."""

    def __init__(self, partition: TopicPartition, offset: int, sentence: str) -> None:
        self.offset = offset
        super().__init__(partition, sentence)


class LogTruncated(PositionOutOfRange):
    """Records that were read are not in the log any more: a leader was elected that never had them."""

    def __init__(self, partition: TopicPartition, offset: int, end_offset: int | None) -> None:
        self.end_offset = end_offset
        """Where the two histories part, if the broker knows."""
        where = "" if end_offset is None else f" to {end_offset}"
        sentence = f"the log was cut off{where}, below position {offset}; seek to where reading shall go on"
        super().__init__(partition, offset, sentence)


class NotAllowed(FetchError):
    """The broker refuses this client the topic."""


class BatchUnreadable(FetchError):
    """Bytes that cannot be records; ``offset`` is where they begin, ``next_offset`` where what follows them does."""

    def __init__(self, partition: TopicPartition, offset: int, next_offset: int, why: str) -> None:
        self.offset, self.next_offset = offset, next_offset
        super().__init__(partition, f"{why}; seek to {next_offset} to go on without the batch")
