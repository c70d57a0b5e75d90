"""OffsetCommit, OffsetFetch, OffsetDelete, and offsets growing old.

See docs/group-protocol.md. A commit is answered once it is durable, and a fetch sees
durable commits only.
"""

from __future__ import annotations

from collections.abc import Iterable

from consumers.group_protocol.coordinator.events import OffsetsExpired, RecordUnreadable
from consumers.group_protocol.coordinator.group import State
from consumers.group_protocol.coordinator.groups import Group, Groups
from consumers.group_protocol.coordinator.holdings import is_name
from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.coordinator.rebalance import Rebalance
from consumers.group_protocol.coordinator.records import offset_record, read_key, read_offset
from consumers.group_protocol.coordinator.replies import Replies, nothing
from consumers.group_protocol.coordinator.requests import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    Token,
)
from consumers.group_protocol.coordinator.results import (
    FetchedOffset,
    OffsetCommitResult,
    OffsetDeleteResult,
    OffsetFetchResult,
    PartitionResult,
)
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.subscription import PROTOCOL_TYPE, topics_of
from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.topics.internal import partition_of
from since2011.wire.error_codes import ErrorCode

_LOG_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""What the log says of an append, as a producer is told; everything else is passed on."""
EPOCH_VERSION = 9
"""OffsetCommit from here on knows member epochs (KIP-848)."""


class Offsets:
    """Thread: one."""

    def __init__(self, replies: Replies, groups: Groups, rebalance: Rebalance) -> None:
        self._replies, self._groups, self._rebalance = replies, groups, rebalance
        self._open: dict[int, set[str]] = {}
        """By producer: groups with offsets of its transaction, which has not ended."""

    # Commit

    def commit(self, token: Token, request: OffsetCommit) -> None:
        group = self._group_to_commit_to(request)
        error = group if isinstance(group, ErrorCode) else self._refusal(group, request)
        if request.transaction is not None and error in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND):
            error = ErrorCode.ILLEGAL_GENERATION  # producers do not know member epochs
        errors = [error or self._offset_refusal(offset) for offset in request.offsets]
        if isinstance(group, ErrorCode) or all(errors):
            self._answer_commit(token, request, errors)  # a group nothing was accepted of is none
            return
        book, now_ms = group.book, self._replies.wall_ms()
        expire_ms = -1 if request.retention_ms < 0 else now_ms + request.retention_ms
        accepted = {
            TopicPartition(each.topic, each.partition): CommittedOffset(
                each.offset, each.leader_epoch, each.metadata or "", now_ms, expire_ms, book.next_order()
            )
            for each, refused in zip(request.offsets, errors, strict=True)
            if not refused
        }
        if self._replies.holdings.offsets + book.growth(accepted) > self._replies.settings.max_offsets_bytes:
            self._answer_commit(token, request, [each or ErrorCode.INVALID_COMMIT_OFFSET_SIZE for each in errors])
            return
        lost = [each or ErrorCode.COORDINATOR_NOT_AVAILABLE for each in errors]
        self._groups.admit(group)
        if request.transaction is not None:
            self._pend(token, request, group, accepted, errors)
            return

        def durable(_now: float) -> None:
            book.settle(accepted)
            self._answer_commit(token, request, errors)

        book.append(accepted)
        records = [offset_record(group.name, partition, each) for partition, each in accepted.items()]
        self._replies.append(group.name, records, durable, lambda _now: self._answer_commit(token, request, lost))

    def _pend(
        self,
        token: Token,
        request: OffsetCommit,
        group: Group,
        accepted: dict[TopicPartition, CommittedOffset],
        errors: list[ErrorCode],
    ) -> None:
        """Write them as part of a transaction; its marker makes them count."""
        assert request.transaction is not None
        producer_id = request.transaction.producer_id
        records = [offset_record(group.name, partition, each) for partition, each in accepted.items()]
        lost = [each or ErrorCode.COORDINATOR_NOT_AVAILABLE for each in errors]
        refused = self._replies.append_in_transaction(
            group.name,
            records,
            request.transaction,
            lambda _now: self._answer_commit(token, request, errors),
            lambda _now: self._answer_commit(token, request, lost),
        )
        if refused:
            code = _LOG_ERRORS.get(refused, refused)
            self._answer_commit(token, request, [each or code for each in errors])
            return
        group.book.begin(producer_id, accepted)
        self._open.setdefault(producer_id, set()).add(group.name)

    def load_pending(self, producer_id: int, records: Iterable[Record]) -> None:
        """Offsets of a transaction that had not ended when they were read."""
        for record in records:
            try:
                key = read_key(record.key)
                if key.partition is None or record.value is None:
                    continue
                committed = read_offset(record.value, record.offset)
            except (Kafka2011Error, ValueError) as error:
                self._replies.tell(RecordUnreadable(key=record.key, error=str(error)))
                continue
            self._groups.book(key.group).begin(producer_id, {key.partition: committed})
            self._open.setdefault(producer_id, set()).add(key.group)

    def transaction_ended(self, number: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer's transaction is in partition ``number`` of the offsets topic."""
        names = self._open.get(producer_id, set())
        for name in [each for each in names if partition_of(each) == number]:
            names.discard(name)
            group = self._groups.get(name)
            if group is not None:
                group.book.end(producer_id, committed=committed)
        if not names:
            self._open.pop(producer_id, None)

    def _answer_commit(self, token: Token, request: OffsetCommit, errors: list[ErrorCode]) -> None:
        each = zip(request.offsets, errors, strict=True)
        results = tuple(PartitionResult(offset.topic, offset.partition, error) for offset, error in each)
        self._replies.answer(token, OffsetCommitResult(results))

    def _group_to_commit_to(self, request: OffsetCommit) -> Group | ErrorCode:
        if not is_name(request.group):
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(request.group)
        if group is not None:
            return group
        if request.generation < 0:
            return self._groups.simple_for_commit(request.group)
        return ErrorCode.GROUP_ID_NOT_FOUND if request.version >= EPOCH_VERSION else ErrorCode.ILLEGAL_GENERATION

    def _refusal(self, group: Group, request: OffsetCommit) -> ErrorCode:
        if isinstance(group, ConsumerGroup):
            return _consumer_refusal(group, request)
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if request.generation < 0 and group.state is State.EMPTY:
            return ErrorCode.NONE
        if request.generation < 0 and not request.member and request.instance is None:
            # Producers before TxnOffsetCommit 3 cannot say which member they are.
            return ErrorCode.UNKNOWN_MEMBER_ID if request.transaction is None else ErrorCode.NONE
        error = group.validate(request.member, request.instance)
        if error:
            return error
        if request.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalance.restart_session(group, group.members[request.member])
        completing = group.state is State.COMPLETING and request.transaction is None
        return ErrorCode.REBALANCE_IN_PROGRESS if completing else ErrorCode.NONE

    def _offset_refusal(self, offset: OffsetToCommit) -> ErrorCode:
        if len((offset.metadata or "").encode()) > self._replies.settings.offset_metadata_max_size:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        count = self._replies.topics.partition_count(offset.topic)
        if count is None or not 0 <= offset.partition < count:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    # Fetch

    def fetch(self, token: Token, request: OffsetFetch) -> None:
        group = self._groups.get(request.group)
        error = ErrorCode.NONE if request.group else ErrorCode.INVALID_GROUP_ID
        if isinstance(group, ConsumerGroup) and request.member:
            member = group.members.get(request.member)
            if member is None:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            elif request.member_epoch != member.epoch:
                error = ErrorCode.STALE_MEMBER_EPOCH
        if error:
            self._replies.answer(token, OffsetFetchResult(error))
            return
        durable = group.book.durable if group else {}
        wanted = sorted(durable) if request.partitions is None else request.partitions
        found = tuple(
            _fetched(each, durable.get(each))
            if group is None or not request.require_stable or group.book.is_stable(each)
            else FetchedOffset(each.topic, each.partition, -1, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
            for each in wanted
        )
        self._replies.answer(token, OffsetFetchResult(ErrorCode.NONE, found))

    # Delete

    def delete(self, token: Token, request: OffsetDelete) -> None:
        group = self._groups.get(request.group)
        if group is None or not request.group:
            error = ErrorCode.GROUP_ID_NOT_FOUND if request.group else ErrorCode.INVALID_GROUP_ID
            self._replies.answer(token, OffsetDeleteResult(error))
            return
        subscribed = subscribed_topics(group)
        if subscribed is None:
            self._replies.answer(token, OffsetDeleteResult(ErrorCode.NON_EMPTY_GROUP))
            return
        results = tuple(
            PartitionResult(
                each.topic,
                each.partition,
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if each.topic in subscribed else ErrorCode.NONE,
            )
            for each in request.partitions
        )
        doomed = [each for each in request.partitions if each.topic not in subscribed and each in group.book.appended]
        answer = OffsetDeleteResult(ErrorCode.NONE, results)
        group.book.delete(doomed)
        self._replies.append(
            group.name,
            [offset_record(group.name, each, None) for each in doomed],
            lambda _now: self._replies.answer(token, answer),
            lambda _now: self._replies.answer(token, OffsetDeleteResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        )

    # Expiry

    def expire(self, group: Group) -> None:
        """Drop what nobody has used for the retention time."""
        now_ms = self._replies.wall_ms()
        limit = now_ms - self._replies.settings.offsets_retention_ms
        is_empty = not group.members
        subscribed = subscribed_topics(group)
        doomed = []
        for partition, committed in group.book.appended.items():
            if committed.expire_ms >= 0:
                is_old = committed.expire_ms <= now_ms
            elif is_empty:
                # A classic group ages from the moment it became empty, a simple one or KIP-848's from each commit.
                simple = isinstance(group, ConsumerGroup) or not group.protocol_type
                is_old = (committed.commit_ms if simple else max(group.state_ms, committed.commit_ms)) <= limit
            else:
                unused = subscribed is not None and partition.topic not in subscribed
                is_old = unused and committed.commit_ms <= limit
            if is_old:
                doomed.append(partition)
        if doomed:
            group.book.delete(doomed)
            self._replies.append(group.name, [offset_record(group.name, p, None) for p in doomed], nothing, nothing)
            self._replies.tell(OffsetsExpired(group=group.name, n_offsets=len(doomed)))


def _consumer_refusal(group: ConsumerGroup, request: OffsetCommit) -> ErrorCode:
    if request.generation < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(request.member)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.version < EPOCH_VERSION and request.transaction is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE if request.generation == member.epoch else ErrorCode.STALE_MEMBER_EPOCH


def _fetched(partition: TopicPartition, committed: CommittedOffset | None) -> FetchedOffset:
    if committed is None:
        return FetchedOffset(partition.topic, partition.partition, -1)
    return FetchedOffset(
        partition.topic, partition.partition, committed.offset, committed.leader_epoch, committed.metadata
    )


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics a group reads; None when it has members but its protocol does not tell."""
    if isinstance(group, ConsumerGroup):
        return frozenset(group.subscribed)
    if not group.members:
        return frozenset()
    if group.protocol_type != PROTOCOL_TYPE or group.state is not State.STABLE:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        named = topics_of(member.metadata(group.protocol))
        if named is None:
            return None
        topics |= named
    return frozenset(topics)
