"""Which function answers which request, before services add theirs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from since2011.server.handlers import (
    acls,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    authentication,
    client_quotas,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_user_scram_credentials,
    elect_leaders,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    leader_and_isr,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_for_leader_epoch,
    produce,
    stop_replica,
    update_metadata,
    versions,
    write_txn_markers,
)
from since2011.server.handlers.call import Answer, Call
from since2011.wire.codec import ApiKey

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

BrokerHandler = Callable[["ModernBroker", Call], Coroutine[Any, Any, Answer | None]]

HANDLERS: dict[ApiKey, BrokerHandler] = {
    ApiKey.PRODUCE: produce.produce,
    ApiKey.FETCH: fetch.fetch,
    ApiKey.LIST_OFFSETS: list_offsets.list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.offset_for_leader_epoch,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.LEADER_AND_ISR: leader_and_isr.leader_and_isr,
    ApiKey.STOP_REPLICA: stop_replica.stop_replica,
    ApiKey.UPDATE_METADATA: update_metadata.update_metadata,
    ApiKey.FIND_COORDINATOR: find_coordinator.find_coordinator,
    ApiKey.API_VERSIONS: versions.api_versions,
    ApiKey.CREATE_TOPICS: create_topics.create_topics,
    ApiKey.DELETE_TOPICS: delete_topics.delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions.create_partitions,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.incremental_alter_configs,
    ApiKey.CONTROLLED_SHUTDOWN: controlled_shutdown.controlled_shutdown,
    ApiKey.ELECT_LEADERS: elect_leaders.elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.list_partition_reassignments,
    ApiKey.DESCRIBE_ACLS: acls.describe_acls,
    ApiKey.CREATE_ACLS: acls.create_acls,
    ApiKey.DELETE_ACLS: acls.delete_acls,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: client_quotas.describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: client_quotas.alter_client_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials.describe_user_scram_credentials,
    ApiKey.DELETE_RECORDS: delete_records.delete_records,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs.alter_replica_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.describe_log_dirs,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.describe_producers,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.init_producer_id,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers.write_txn_markers,
    ApiKey.SASL_HANDSHAKE: authentication.sasl_handshake,
    ApiKey.SASL_AUTHENTICATE: authentication.sasl_authenticate,
}
