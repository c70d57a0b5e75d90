"""Every error of the project has one base, and says what happened, where, and what to do next.

    Kafka2011Error
    ├── WireError                 bytes that are not what they should be
    │   ├── InvalidMessage        CRC, magic or codec wrong                 wire code 2
    │   ├── InvalidMessageSize    a length that cannot be                   wire code 4
    │   └── InvalidRequest        a request that cannot be read
    ├── OffsetOutOfRange          asked outside [first, flushed end]        wire code 1
    ├── WrongPartition            no such partition                         wire code 3
    ├── UnknownError              the broker met something unforeseen       wire code -1
    ├── IllegalTopicName
    ├── MessageTooLarge
    │   └── SetTooLarge           inflates to too much, or holds too many   also an InvalidMessage
    ├── LogError                  the log cannot go on
    │   ├── LogCorrupt            damage that must not be skipped silently
    │   ├── LogFailed             an earlier disk error; restart the broker
    │   │   └── FlushFailed       appended, then the disk failed            not definite
    │   ├── LogFull               no space; retried by itself when there is space again
    │   ├── NotServing            this broker does not serve just now; the connection is closed
    │   ├── TooFewInSync          not held by as many members as it must be
    │   └── LogDirectoryInUse     another process holds the directory
    ├── ConfigError
    ├── ConnectionFailed          could not reach, or lost, a broker        retriable
    │   ├── CannotConnect         nothing was sent                          definite
    │   ├── SendBroken            broken while sending
    │   ├── AnswerLost            broken between request and answer
    │   └── PortSpeaksTls         it speaks TLS, and we did not             definite, not retriable
    ├── RequestTimedOut           no answer in time                         retriable, not definite
    ├── NotDelivered              a producer gave messages up               not definite
    └── ProducerClosed / QueueFull

``retriable``: the same call may succeed later. ``definite``: it certainly had no effect; an error that is not
definite may have happened or not (a timeout is never proof of failure).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class Kafka2011Error(Exception):
    """Base of every error raised on purpose."""

    code: ClassVar[int | None] = None
    retriable: ClassVar[bool] = False
    definite: ClassVar[bool] = True
    exit_code: ClassVar[int] = 1
    """What a command ends with because of it."""


class WireError(Kafka2011Error):
    """Bytes that do not follow the 0.7 format."""


class InvalidMessage(WireError):
    """A message whose CRC, magic or codec is wrong (§3.3)."""

    code = 2


class InvalidMessageSize(WireError):
    """A message length that is negative, too small, or longer than the bytes at hand."""

    code = 4


class InvalidRequest(WireError):
    """A request that cannot be read; the broker closes the connection."""


class OffsetOutOfRange(Kafka2011Error):
    """An offset below the first segment or above the flushed end (§3.1)."""

    code = 1

    def __init__(self, offset: int, first: int | None = None, end: int | None = None, where: str = "the log") -> None:
        self.offset, self.first, self.end, self.where = offset, first, end, where
        if first is None or end is None:
            # A 0.7 answer carries the code alone.
            super().__init__(f"offset {offset} is outside {where}; ask OFFSETS for the earliest and the latest")
        else:
            super().__init__(
                f"offset {offset} is outside {where}, which holds {first} up to {end}; "
                f"start from {first} (smallest) or {end} (largest)"
            )


class WrongPartition(Kafka2011Error):
    """A partition this broker does not have for the topic."""

    code = 3


class UnknownError(Kafka2011Error):
    """The broker answered -1: something it did not foresee."""

    code = -1
    definite = False


class IllegalTopicName(Kafka2011Error):
    """A name that cannot be a directory and a znode."""


class MessageTooLarge(Kafka2011Error):
    """A message over ``max.message.size``."""


class SetTooLarge(MessageTooLarge, InvalidMessage):
    """A set that inflates to more bytes, or holds more messages, than one request may."""


class LogError(Kafka2011Error):
    """The log of a partition cannot do what was asked."""


class LogCorrupt(LogError):
    """Damage in the middle of flushed data: never skipped silently."""


class LogFailed(LogError):
    """The disk failed this log earlier; it stays closed for writing until the broker restarts."""


class FlushFailed(LogFailed):
    """The disk failed after the append: whether the messages are there will be known after a restart."""

    definite = False


class LogFull(LogError):
    """No space left; nothing of the append is kept, reads go on."""

    retriable = True


class NotServing(LogError):
    """This broker does not serve now: another does, or nobody knows. The connection is closed without an answer."""

    retriable = True


class TooFewInSync(LogError):
    """Fewer brokers hold the log than an acknowledgement by all of them asks for; nothing was appended."""

    retriable = True


class TooManyTopics(LogFull):
    """A topic that is not created: the broker holds as many as it may, or is asked for them too fast."""


class LogDirectoryInUse(LogError):
    """Another process has this data directory."""


class ConfigError(Kafka2011Error):
    """A setting that is unknown or has an impossible value."""


class ConnectionFailed(Kafka2011Error):
    """A broker could not be reached, or the connection broke."""

    retriable = True
    definite = False


class CannotConnect(ConnectionFailed):
    """The broker could not be reached, so nothing was sent: trying again, or elsewhere, is safe."""

    definite = True


class SendBroken(ConnectionFailed):
    """The connection broke while sending. The kernel had taken ``accepted`` bytes; what lies beyond never left."""

    def __init__(self, text: str, accepted: int) -> None:
        super().__init__(text)
        self.accepted = accepted


class AnswerLost(ConnectionFailed):
    """The connection broke between request and answer: the request may have had its effect."""


class PortSpeaksTls(ConnectionFailed):
    """We spoke in the clear where TLS is spoken: nothing was understood, and trying again changes nothing."""

    retriable = False
    definite = True


class RequestTimedOut(Kafka2011Error):
    """No answer in time; the request may still take effect."""

    retriable = True
    definite = False


class NotDelivered(Kafka2011Error):
    """A producer gave up messages it had accepted, or cannot know whether they arrived."""

    definite = False

    def __init__(self, n_messages: int, reasons: Mapping[str, int]) -> None:
        self.n_messages, self.reasons = n_messages, dict(reasons)
        why = "; ".join(f"{n} × {reason}" for reason, n in self.reasons.items())
        super().__init__(
            f"accepted by send() and not delivered: {n_messages} ({why}) Send them again, or give the producer an "
            "on_drop handler, which is told of each loss and then decides"
        )


class ProducerClosed(Kafka2011Error):
    """send() after close()."""


class QueueFull(Kafka2011Error):
    """The producer's queue is full and the policy is to raise."""

    retriable = True


BY_CODE: dict[int, type[Kafka2011Error]] = {
    -1: UnknownError,
    1: OffsetOutOfRange,
    2: InvalidMessage,
    3: WrongPartition,
    4: InvalidMessageSize,
}
"""What each wire error code means (docs/protocol.md)."""
