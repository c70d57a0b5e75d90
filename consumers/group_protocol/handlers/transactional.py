"""TxnOffsetCommit: offsets that count once the producer's transaction is committed (KIP-98, KIP-447).

Behavior:
- The transaction's coordinator is asked first whether the group's partition of the offsets topic is part of the
  transaction (KIP-890); its answer is passed on.
- Then the rules of OffsetCommit, but for three: a member that does not say who it is, is believed; a group that is
  being rebalanced takes the offsets; a stale member epoch of a KIP-848 group is ILLEGAL_GENERATION.
- Until the marker is there, readers that ask for stable offsets are told UNSTABLE_OFFSET_COMMIT, others the value from
  before.

Version notes:
- Below 2 the client does not know 14 and is told 15; 3 member, generation and instance; 4 the client knows
  TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.coordinator import requests as ask
from consumers.group_protocol.coordinator import results as said
from consumers.group_protocol.coordinator.holdings import is_name
from consumers.group_protocol.coordinator.settings import InTransaction
from kafka2011.errors import Kafka2011Error
from since2011.server.verification import begin, told
from since2011.topics.internal import OFFSETS_TOPIC, partition_of
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from consumers.group_protocol.service import CoordinatorService
    from since2011.server.handlers.call import Call

_LOADING_FROM, _ABORTABLE_FROM = 2, 4


async def txn_offset_commit(service: CoordinatorService, call: Call) -> Struct:
    """Answered when the offsets are as safe as the topic asks for; the transaction decides whether they count."""
    body = call.body
    rows = [(topic.name, one) for topic in body.topics for one in topic.partitions]
    transaction, error = await _verified(service, call)
    if error:
        errors = [_told(error, call.version)] * len(rows)
    else:
        offsets = tuple(
            ask.OffsetToCommit(topic, one.index, one.offset, one.leader_epoch, one.metadata) for topic, one in rows
        )
        request = ask.OffsetCommit(
            body.group, body.generation, body.member, offsets, body.instance, transaction=transaction
        )
        answer = await service.groups.ask(request, said.OffsetCommitResult)
        errors = [_told(one.error, call.version) for one in answer.partitions]
    each = iter(errors)
    return Struct(topics=[
        Struct(name=topic.name, partitions=[Struct(index=one.index, error=next(each)) for one in topic.partitions])
        for topic in body.topics
    ])  # fmt: skip


async def _verified(service: CoordinatorService, call: Call) -> tuple[InTransaction | None, ErrorCode]:
    """The transaction as the log is to check it, or why there is none."""
    body, modern = call.body, service.modern
    if not is_name(body.group):
        return None, ErrorCode.INVALID_GROUP_ID
    if error := service.group_error(body.group):
        return None, error
    verifier = modern.verifier
    if verifier is None or not body.transactional_id:
        return None, ErrorCode.INVALID_REQUEST if verifier else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not verifier.verifies:
        return InTransaction(body.producer_id, body.epoch), ErrorCode.NONE
    try:
        led = modern.topics.led(OFFSETS_TOPIC, partition_of(body.group))
        ticket = begin(modern, led, body.producer_id, body.epoch, 0)
    except Kafka2011Error as refused:
        return None, refusal(refused)[0]
    if ticket is not None:
        found = await verifier.verify(body.transactional_id, body.producer_id, body.epoch, [led.key])
        if error := told(found[led.key], abortable=call.version >= _ABORTABLE_FROM):
            return None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error == ErrorCode.NETWORK_EXCEPTION else error
    return InTransaction(body.producer_id, body.epoch, must_be_verified=True, verified=ticket), ErrorCode.NONE


def _told(error: ErrorCode, version: int) -> ErrorCode:
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error
