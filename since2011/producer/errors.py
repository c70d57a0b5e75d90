"""What can become of a record or a transaction, in the three kinds that ask for three answers.

    SendError
    ├── RetriableError        try the same again; the producer did, until its time or its retries were over
    │   ├── DeliveryTimedOut  delivery.timeout.ms is over: the record may be stored or not
    │   ├── BufferExhausted   buffer.memory was full for max.block.ms: the record was not taken
    │   └── TimedOut          a call took longer than max.block.ms; call it again
    ├── RecordRefused         this record cannot be stored, others can: change it or leave it out
    ├── AbortableError        abort_transaction(), then begin_transaction() and send again
    └── FatalError            close() this producer; another one may do better

``KINDS`` says which error code of a Produce answer is of which kind; every message says what to do.
"""

from __future__ import annotations

from enum import Enum

from kafka2011.errors import Kafka2011Error
from since2011.wire.error_codes import ErrorCode

E = ErrorCode


class SendError(Kafka2011Error):
    """Something was not stored, or it is not known whether it was; ``code`` is what the broker answered, if it did."""

    definite = False

    def __init__(self, sentence: str, code: ErrorCode | None = None) -> None:
        self.answered = code
        super().__init__(sentence)


class RetriableError(SendError):
    """The same may succeed later."""

    retriable = True


class DeliveryTimedOut(RetriableError):
    """``delivery.timeout.ms`` is over."""


class BufferExhausted(RetriableError):
    """``buffer.memory`` was full for ``max.block.ms``: nothing was taken."""

    definite = True


class TimedOut(RetriableError):
    """``max.block.ms`` is over."""


class RecordRefused(SendError):
    """The record itself is refused."""

    definite = True


class AbortableError(SendError):
    """The transaction cannot be committed any more; a new one can."""


class FatalError(SendError):
    """This producer can do nothing more."""


class Kind(Enum):
    """What is to be done about an error code."""

    RETRY = RetriableError
    REFUSED = RecordRefused
    ABORT = AbortableError
    FATAL = FatalError
    UNKNOWN = SendError


KINDS: dict[ErrorCode, tuple[Kind, str]] = {
    E.CORRUPT_MESSAGE: (Kind.RETRY, "the bytes arrived damaged; try again"),
    E.UNKNOWN_TOPIC_OR_PARTITION: (Kind.RETRY, "is there such a topic? see: kafka2011 topics list"),
    E.LEADER_NOT_AVAILABLE: (Kind.RETRY, "the partition has no leader at the moment; are all brokers up?"),
    E.NOT_LEADER_OR_FOLLOWER: (Kind.RETRY, "the leader has changed; try again"),
    E.REQUEST_TIMED_OUT: (Kind.RETRY, "the replicas did not follow in time; try again"),
    E.COORDINATOR_LOAD_IN_PROGRESS: (Kind.RETRY, "the coordinator is starting; try again"),
    E.COORDINATOR_NOT_AVAILABLE: (Kind.RETRY, "there is no coordinator at the moment; try again"),
    E.NOT_COORDINATOR: (Kind.RETRY, "the coordinator has moved; try again"),
    E.NOT_ENOUGH_REPLICAS: (Kind.RETRY, "fewer replicas than min.insync.replicas; bring brokers back, then try again"),
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (Kind.RETRY, "stored, but by fewer replicas than min.insync.replicas"),
    E.KAFKA_STORAGE_ERROR: (Kind.RETRY, "the broker's disk failed; try again when another broker leads"),
    E.CONCURRENT_TRANSACTIONS: (Kind.RETRY, "the transaction before is still being ended; try again"),
    E.UNKNOWN_TOPIC_ID: (Kind.RETRY, "the topic was deleted or made again; try again"),
    E.FENCED_LEADER_EPOCH: (Kind.RETRY, "the leader has changed; try again"),
    E.UNKNOWN_LEADER_EPOCH: (Kind.RETRY, "the leader is changing; try again"),
    E.THROTTLING_QUOTA_EXCEEDED: (Kind.RETRY, "the quota is used up; send more slowly"),
    E.OUT_OF_ORDER_SEQUENCE_NUMBER: (Kind.ABORT, "records before it were lost on the way; send them again"),
    E.UNKNOWN_PRODUCER_ID: (Kind.ABORT, "the broker has forgotten this producer; send the records again"),
    E.INVALID_PRODUCER_EPOCH: (Kind.ABORT, "another producer took over, or the transaction timed out; abort it"),
    E.INVALID_PRODUCER_ID_MAPPING: (Kind.ABORT, "the coordinator has forgotten this producer; abort and begin again"),
    E.TRANSACTION_ABORTABLE: (Kind.ABORT, "the broker asks to abort the transaction"),
    E.UNKNOWN_MEMBER_ID: (Kind.ABORT, "the consumer has lost its place in the group; abort, poll, begin again"),
    E.ILLEGAL_GENERATION: (Kind.ABORT, "the group has been rebalanced; abort, poll, begin again"),
    E.STALE_MEMBER_EPOCH: (Kind.ABORT, "the group has been rebalanced; abort, poll, begin again"),
    E.FENCED_INSTANCE_ID: (Kind.ABORT, "another consumer has the same group.instance.id; abort and close this one"),
    E.GROUP_AUTHORIZATION_FAILED: (Kind.ABORT, "this user may not write to the group; abort, or ask for the right"),
    E.TOPIC_AUTHORIZATION_FAILED: (Kind.REFUSED, "this user may not write to the topic; ask for the right"),
    E.INVALID_TOPIC: (Kind.REFUSED, "this cannot be a topic; choose another name"),
    E.MESSAGE_TOO_LARGE: (Kind.REFUSED, "larger than the topic's max.message.bytes; make it smaller or raise that"),
    E.RECORD_LIST_TOO_LARGE: (Kind.REFUSED, "larger than a segment; make it smaller or raise segment.bytes"),
    E.INVALID_RECORD: (Kind.REFUSED, "the broker does not take such a record (a compacted topic needs a key)"),
    E.INVALID_TIMESTAMP: (Kind.REFUSED, "its time is outside what the topic's message.timestamp settings allow"),
    E.UNSUPPORTED_COMPRESSION_TYPE: (Kind.REFUSED, "the broker does not know this codec; choose another"),
    E.POLICY_VIOLATION: (Kind.REFUSED, "the broker's policy forbids it"),
    E.INVALID_REQUIRED_ACKS: (Kind.FATAL, "the broker does not know these acks; use 0, 1 or all"),
    E.UNSUPPORTED_FOR_MESSAGE_FORMAT: (Kind.FATAL, "the topic's format is too old for this; use another topic"),
    E.PRODUCER_FENCED: (Kind.FATAL, "another producer with the same transactional.id has started; close this one"),
    E.INVALID_TXN_STATE: (Kind.FATAL, "the transaction is in another state than we thought; close this producer"),
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (Kind.FATAL, "this user may not use the transactional.id; ask for it"),
    E.TRANSACTION_COORDINATOR_FENCED: (Kind.FATAL, "an old coordinator answered; close this producer"),
    E.INVALID_TRANSACTION_TIMEOUT: (
        Kind.FATAL,
        "transaction.timeout.ms is larger than the broker's transaction.max.timeout.ms; choose a smaller one",
    ),
    E.UNSUPPORTED_VERSION: (Kind.FATAL, "the broker does not speak this version; use another broker"),
}
"""Codes that are not here fail the record, and nothing is known of it."""

MOVED = frozenset(
    (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.KAFKA_STORAGE_ERROR,
        E.UNKNOWN_TOPIC_ID,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
    )
)
"""What we know of the cluster is out of date: ask for Metadata."""


def known(number: int) -> ErrorCode:
    """An error code by its number; those nobody here knows are unknown server errors."""
    return ErrorCode(number) if number in ErrorCode._value2member_map_ else E.UNKNOWN_SERVER_ERROR


def kind_of(code: ErrorCode) -> Kind:
    """What is to be done about a code."""
    return KINDS[code][0] if code in KINDS else Kind.UNKNOWN


def error_of(where: str, code: ErrorCode, said: str | None = None, *, kind: Kind | None = None) -> SendError:
    """The error for what a broker answered, with its own sentence where it gave one."""
    hint = KINDS[code][1] if code in KINDS else "nothing is known about what to do; look at the broker's log"
    chosen: type[SendError] = (kind or kind_of(code)).value
    return chosen(f"{where}: {code.name} ({int(code)}){': ' + said if said else ''}; {hint}", code)
