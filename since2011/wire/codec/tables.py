"""Every request and answer this broker offers, as one table: field by field, version by version.

    name:type    i8 i16 i32 i64 f64 bool uuid str bytes records, [..] an array, {..} a structure
    @a+  @a-b    present only in these versions
    ?  ?a+       may be null (from version a on)
    =value       what a missing field is taken to be, when that is not 0, "" or empty
    #n           a tagged field, left out where it is null

Order is wire order. A ``records`` field is handed over as the bytes it is. To offer another request, add its lines here
and a handler.

See docs/modern-port.md (versions), §1.5 (fields).
"""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    """The requests of today's protocol that are understood here."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


TABLE = """
PRODUCE 3-11 flexible 9
> transactional_id:str? acks:i16 timeout_ms:i32 topics:[{name:str partitions:[{index:i32 records:records?}]}]
< topics:[{name:str partitions:[{index:i32 error:i16 base_offset:i64=-1 log_append_ms:i64=-1 log_start:i64@5+=-1
  record_errors:[{batch_index:i32 message:str?}]@8+ error_message:str?@8+}]}] throttle_ms:i32

FETCH 4-17 flexible 12
> replica_id:i32@4-14=-1 max_wait_ms:i32 min_bytes:i32 max_bytes:i32 isolation:i8 session_id:i32@7+
  session_epoch:i32@7+=-1
  topics:[{name:str@4-12 topic_id:uuid@13+ partitions:[{index:i32 leader_epoch:i32@9+=-1 offset:i64
  last_epoch:i32@12+=-1 log_start:i64@5+=-1 max_bytes:i32}]}]
  forgotten:[{name:str@7-12 topic_id:uuid@13+ partitions:[i32]}]@7+ rack:str@11+
< throttle_ms:i32 error:i16@7+ session_id:i32@7+ topics:[{name:str@4-12 topic_id:uuid@13+
  partitions:[{index:i32 error:i16 high_watermark:i64=-1 last_stable:i64=-1 log_start:i64@5+=-1
  aborted:[{producer_id:i64 first_offset:i64}]? preferred_replica:i32@11+=-1 records:records?
  diverging_epoch:{epoch:i32 end_offset:i64}?@12+#0}]}]

LIST_OFFSETS 1-9 flexible 6
> replica_id:i32=-1 isolation:i8@2+
  topics:[{name:str partitions:[{index:i32 leader_epoch:i32@4+=-1 timestamp:i64}]}]
< throttle_ms:i32@2+ topics:[{name:str partitions:[{index:i32 error:i16 timestamp:i64=-1 offset:i64=-1
  leader_epoch:i32@4+=-1}]}]

METADATA 0-12 flexible 9
> topics:[{topic_id:uuid@10+ name:str?10+}]?1+ auto_create:bool@4+=1 cluster_ops:bool@8-10 topic_ops:bool@8+
< throttle_ms:i32@3+ brokers:[{id:i32 host:str port:i32 rack:str?@1+}] cluster_id:str?@2+ controller:i32@1+=-1
  topics:[{error:i16 name:str?12+ topic_id:uuid@10+ internal:bool@1+ partitions:[{error:i16 index:i32 leader:i32
  leader_epoch:i32@7+=-1 replicas:[i32] isr:[i32] offline:[i32]@5+}] ops:i32@8+=-2147483648}]
  cluster_ops:i32@8-10=-2147483648

OFFSET_COMMIT 2-9 flexible 8
> group:str generation_or_epoch:i32=-1 member:str instance:str?@7+ retention_ms:i64@2-4=-1
  topics:[{name:str partitions:[{index:i32 offset:i64 leader_epoch:i32@6+=-1 metadata:str?}]}]
< throttle_ms:i32@3+ topics:[{name:str partitions:[{index:i32 error:i16}]}]

OFFSET_FETCH 1-9 flexible 6
> group:str@1-7 topics:[{name:str partitions:[i32]}]?2+@1-7
  groups:[{group:str member:str?@9+ member_epoch:i32@9+=-1 topics:[{name:str partitions:[i32]}]?}]@8+
  require_stable:bool@7+
< throttle_ms:i32@3+
  topics:[{name:str partitions:[{index:i32 offset:i64 leader_epoch:i32@5+=-1 metadata:str? error:i16}]}]@1-7
  error:i16@2-7
  groups:[{group:str topics:[{name:str partitions:[{index:i32 offset:i64 leader_epoch:i32=-1 metadata:str? error:i16}]}]
  error:i16}]@8+

FIND_COORDINATOR 0-5 flexible 3
> key:str@0-3 key_type:i8@1+ keys:[str]@4+
< throttle_ms:i32@1+ error:i16@0-3 error_message:str?@1-3 node:i32@0-3=-1 host:str@0-3 port:i32@0-3=-1
  coordinators:[{key:str node:i32=-1 host:str port:i32=-1 error:i16 error_message:str?}]@4+

JOIN_GROUP 0-9 flexible 6
> group:str session_ms:i32 rebalance_ms:i32@1+=-1 member:str instance:str?@5+ type:str
  protocols:[{name:str metadata:bytes}] reason:str?@8+
< throttle_ms:i32@2+ error:i16 generation:i32=-1 protocol_type:str?@7+ protocol:str?7+ leader:str
  skip_assignment:bool@9+ member:str
  members:[{member:str instance:str?@5+ metadata:bytes}]

HEARTBEAT 0-4 flexible 4
> group:str generation:i32 member:str instance:str?@3+
< throttle_ms:i32@1+ error:i16

LEAVE_GROUP 0-5 flexible 4
> group:str member:str@0-2 members:[{member:str instance:str? reason:str?@5+}]@3+
< throttle_ms:i32@1+ error:i16 members:[{member:str instance:str? error:i16}]@3+

SYNC_GROUP 0-5 flexible 4
> group:str generation:i32 member:str instance:str?@3+ protocol_type:str?@5+ protocol:str?@5+
  assignments:[{member:str assignment:bytes}]
< throttle_ms:i32@1+ error:i16 protocol_type:str?@5+ protocol:str?@5+ assignment:bytes

DESCRIBE_GROUPS 0-5 flexible 5
> groups:[str] ops:bool@3+
< throttle_ms:i32@1+ groups:[{error:i16 group:str state:str type:str protocol:str
  members:[{member:str instance:str?@4+ client:str host:str metadata:bytes assignment:bytes}]
  ops:i32@3+=-2147483648}]

LIST_GROUPS 0-5 flexible 3
> states:[str]@4+ types:[str]@5+
< throttle_ms:i32@1+ error:i16 groups:[{group:str type:str state:str@4+ group_type:str@5+}]

SASL_HANDSHAKE 0-1 flexible 9
> mechanism:str
< error:i16 mechanisms:[str]

API_VERSIONS 0-4 flexible 3
> software_name:str@3+ software_version:str@3+
< error:i16 apis:[{key:i16 min:i16 max:i16}] throttle_ms:i32@1+

DELETE_RECORDS 0-2 flexible 2
> topics:[{name:str partitions:[{index:i32 offset:i64}]}] timeout_ms:i32
< throttle_ms:i32 topics:[{name:str partitions:[{index:i32 low_watermark:i64=-1 error:i16}]}]

INIT_PRODUCER_ID 0-5 flexible 2
> transactional_id:str? txn_timeout_ms:i32 producer_id:i64@3+=-1 producer_epoch:i16@3+=-1
< throttle_ms:i32 error:i16 producer_id:i64=-1 epoch:i16=-1

OFFSET_FOR_LEADER_EPOCH 2-4 flexible 4
> replica_id:i32@3+=-2 topics:[{name:str partitions:[{index:i32 current_epoch:i32=-1 epoch:i32}]}]
< throttle_ms:i32 topics:[{name:str partitions:[{error:i16 index:i32 epoch:i32=-1 end_offset:i64=-1}]}]

ALTER_REPLICA_LOG_DIRS 1-2 flexible 2
> dirs:[{path:str topics:[{name:str partitions:[i32]}]}]
< throttle_ms:i32 results:[{topic_name:str partitions:[{partition_index:i32 error:i16}]}]

DESCRIBE_LOG_DIRS 1-4 flexible 2
> topics:[{topic:str partitions:[i32]}]?
< throttle_ms:i32 error:i16@3+ results:[{error:i16 log_dir:str topics:[{name:str partitions:[{partition_index:i32
  partition_size:i64 offset_lag:i64 is_future_key:bool}]}] total_bytes:i64@4+=-1 usable_bytes:i64@4+=-1}]

DESCRIBE_CLUSTER 0-1 flexible 0
> include_cluster_authorized_operations:bool endpoint_type:i8@1+=1
< throttle_ms:i32 error:i16 error_message:str? endpoint_type:i8@1+=1 cluster_id:str controller_id:i32=-1
  brokers:[{broker_id:i32 host:str port:i32 rack:str?}] cluster_authorized_operations:i32=-2147483648

SASL_AUTHENTICATE 0-1 flexible 2
> auth:bytes
< error:i16 error_message:str? auth:bytes session_ms:i64@1+

CONSUMER_GROUP_HEARTBEAT 1-1 flexible 0
> group:str member:str epoch:i32 instance:str? rack:str? rebalance_ms:i32=-1 topics:[str]? regex:str? assignor:str?
  owned:[{topic_id:uuid partitions:[i32]}]?
< throttle_ms:i32 error:i16 error_message:str? member:str? epoch:i32 heartbeat_ms:i32
  assignment:{topics:[{topic_id:uuid partitions:[i32]}]}?

CONSUMER_GROUP_DESCRIBE 0-0 flexible 0
> groups:[str] ops:bool
< throttle_ms:i32 groups:[{error:i16 error_message:str? group:str state:str epoch:i32 target_epoch:i32 assignor:str
  members:[{member:str instance:str? rack:str? epoch:i32 client_id:str client_host:str topics:[str] regex:str?
  assignment:{topics:[{topic_id:uuid name:str partitions:[i32]}]}
  target:{topics:[{topic_id:uuid name:str partitions:[i32]}]}}] ops:i32=-2147483648}]

DELETE_GROUPS 0-2 flexible 2
> groups:[str]
< throttle_ms:i32 results:[{group:str error:i16}]

OFFSET_DELETE 0-0 flexible 1
> group:str topics:[{name:str partitions:[{index:i32}]}]
< error:i16 throttle_ms:i32 topics:[{name:str partitions:[{index:i32 error:i16}]}]
"""
"""Versions before ``flexible`` use the classic encoding: fixed lengths, no tagged fields."""
