"""What producers with a transactional id ask: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

Behavior:
- Without a transactional id InitProducerId is the broker's own: any broker gives a fresh producer id.
- A partition nobody knows is told so, and all others of the request 55: nothing is added. Topics of 2011 hold no
  transactions (43).
- EndTxn is answered when the decision is in the log; the markers follow.

Version notes:
- A producer that was fenced is told 47 by the versions that came before 90: InitProducerId below 4, AddPartitionsToTxn,
  AddOffsetsToTxn and EndTxn below 2.
- InitProducerId 3 names the producer id and epoch the client has had: both, or none.
- AddPartitionsToTxn 4 and 5 come from brokers, for several transactions at once: a leader that asks
  (``verify_only``) is told of each partition whether it is part of the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.types import TopicPartition
from since2011.server.events import TransactionRefused
from since2011.server.handlers.init_producer_id import init_producer_id as without_transactions
from since2011.topics.internal import OFFSETS_TOPIC, partition_of
from since2011.transactions.events import AddPartitions, End, Initialize
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.transactions.service import TransactionService

_FENCED_FROM_INIT, _FENCED_FROM = 4, 2
_BETWEEN_BROKERS_FROM = 4


def _told(error: ErrorCode, version: int, fenced_from: int = _FENCED_FROM) -> ErrorCode:
    if error == ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


async def init_producer_id(service: TransactionService, call: Call) -> Struct:
    """A producer id and the next epoch of it; what an older instance left open is aborted first."""
    body = call.body
    name = body.transactional_id
    if name is None:
        return await without_transactions(service.modern, call)
    if not name or (body.producer_id < 0) != (body.producer_epoch < 0):
        return Struct(error=ErrorCode.INVALID_REQUEST)
    longest = service.modern.broker.config.integer("transaction.max.timeout.ms")
    if not 0 < body.txn_timeout_ms <= longest:
        return Struct(error=ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    if service.is_full and service.coordinator.get(name) is None:
        return Struct(error=service.error_of(name) or ErrorCode.COORDINATOR_NOT_AVAILABLE)
    expected = None if body.producer_id < 0 else (body.producer_id, body.producer_epoch)
    found = await service.ask(name, lambda token: Initialize(token, body.txn_timeout_ms, expected))
    if found.error:
        return Struct(error=_told(found.error, call.version, _FENCED_FROM_INIT))
    return Struct(error=ErrorCode.NONE, producer_id=found.producer_id, epoch=found.epoch)


async def add_partitions_to_txn(service: TransactionService, call: Call) -> Struct:
    """Make partitions part of a transaction, or tell whether they are."""
    if call.version < _BETWEEN_BROKERS_FROM:
        return Struct(topics=await _add(service, call, call.body))
    results = []
    for one in call.body.transactions:
        topics = _verdicts(service, one) if one.verify_only else await _add(service, call, one)
        results.append(Struct(transactional_id=one.transactional_id, topics=topics))
    return Struct(error=ErrorCode.NONE, results=results)


async def _add(service: TransactionService, call: Call, one: Struct) -> list[Struct]:
    partitions = _partitions(one)
    errors = {each: _unfit(service, call, each) for each in partitions}
    if any(errors.values()):
        return _rows(one, {each: error or ErrorCode.OPERATION_NOT_ATTEMPTED for each, error in errors.items()})
    wanted = frozenset(partitions)
    found = await service.ask(
        one.transactional_id, lambda token: AddPartitions(token, one.producer_id, one.epoch, wanted)
    )
    return _rows(one, dict.fromkeys(partitions, _told(found.error, call.version)))


def _verdicts(service: TransactionService, one: Struct) -> list[Struct]:
    partitions = _partitions(one)
    if error := service.error_of(one.transactional_id):
        return _rows(one, dict.fromkeys(partitions, error))
    return _rows(one, service.coordinator.verify(one.transactional_id, one.producer_id, one.epoch, partitions))


def _partitions(one: Struct) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in one.topics for index in topic.partitions]


def _rows(one: Struct, errors: dict[TopicPartition, ErrorCode]) -> list[Struct]:
    return [
        Struct(
            name=topic.name,
            partitions=[
                Struct(index=index, error=errors[TopicPartition(topic.name, index)]) for index in topic.partitions
            ],
        )
        for topic in one.topics
    ]


def _unfit(service: TransactionService, call: Call, partition: TopicPartition) -> ErrorCode:
    modern, topic, number = service.modern, partition.topic, partition.partition
    if modern.topics.image.partition(topic, number) is not None:
        return ErrorCode.NONE
    if modern.is_modern(topic) or modern.view().locate(topic, number) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if call.first_time("transaction"):
        modern.journal.emit(TransactionRefused(client=call.client_id, **call.peer))
    return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


async def add_offsets_to_txn(service: TransactionService, call: Call) -> Struct:
    """Make the offsets of a group part of a transaction: the group's partition of the offsets topic."""
    body = call.body
    if not body.group:
        return Struct(error=ErrorCode.INVALID_GROUP_ID)
    partition = frozenset({TopicPartition(OFFSETS_TOPIC, partition_of(body.group))})
    found = await service.ask(
        body.transactional_id, lambda token: AddPartitions(token, body.producer_id, body.epoch, partition)
    )
    return Struct(error=_told(found.error, call.version))


async def end_txn(service: TransactionService, call: Call) -> Struct:
    """Commit or abort."""
    body = call.body
    found = await service.ask(
        body.transactional_id, lambda token: End(token, body.producer_id, body.epoch, body.commit)
    )
    return Struct(error=_told(found.error, call.version))
