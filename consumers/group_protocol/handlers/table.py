"""Which function answers which request."""


from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from consumers.group_protocol.codec import ApiKey
from consumers.group_protocol.handlers import (
    authentication,
    fetch,
    groups,
    metadata,
    offsets,
    positions,
    produce,
    producers,
    topics,
    versions,
)
from consumers.group_protocol.handlers.call import Answer, Call

if TYPE_CHECKING:
    from consumers.group_protocol.service import Modern

Handler = Callable[["Modern", Call], Coroutine[Any, Any, Answer | None]]

HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.PRODUCE: produce.produce,
    ApiKey.FETCH: fetch.fetch,
    ApiKey.LIST_OFFSETS: positions.list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: positions.offset_for_leader_epoch,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.FIND_COORDINATOR: metadata.find_coordinator,
    ApiKey.API_VERSIONS: versions.api_versions,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.JOIN_GROUP: groups.join_group,
    ApiKey.SYNC_GROUP: groups.sync_group,
    ApiKey.HEARTBEAT: groups.heartbeat,
    ApiKey.LEAVE_GROUP: groups.leave_group,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
    ApiKey.OFFSET_COMMIT: offsets.offset_commit,
    ApiKey.OFFSET_FETCH: offsets.offset_fetch,
    ApiKey.INIT_PRODUCER_ID: producers.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: producers.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: producers.add_offsets_to_txn,
    ApiKey.END_TXN: producers.end_txn,
    ApiKey.TXN_OFFSET_COMMIT: producers.txn_offset_commit,
    ApiKey.SASL_HANDSHAKE: authentication.sasl_handshake,
    ApiKey.SASL_AUTHENTICATE: authentication.sasl_authenticate,
}
