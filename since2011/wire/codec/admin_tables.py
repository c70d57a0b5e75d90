"""Requests about topics, settings and placement, in the notation of ``tables``; fields have Kafka's names."""

from __future__ import annotations

ADMIN_TABLE = """
CREATE_TOPICS 2-7 flexible 5
> topics:[{name:str partitions:i32 replication:i16 assignments:[{index:i32 brokers:[i32]}]
  configs:[{name:str value:str?}]}] timeout_ms:i32 validate_only:bool
< throttle_ms:i32 topics:[{name:str topic_id:uuid@7+ error:i16 message:str? num_partitions:i32@5+=-1
  replication_factor:i16@5+=-1
  configs:[{name:str value:str? read_only:bool config_source:i8 is_sensitive:bool}]?5+@5+}]

DELETE_TOPICS 1-6 flexible 4
> topics:[{name:str? topic_id:uuid}]@6+ topic_names:[str]@1-5 timeout_ms:i32
< throttle_ms:i32 responses:[{name:str?6+ topic_id:uuid@6+ error:i16 error_message:str?@5+}]

CREATE_PARTITIONS 0-3 flexible 2
> topics:[{name:str count:i32 assignments:[{broker_ids:[i32]}]?}] timeout_ms:i32 validate_only:bool
< throttle_ms:i32 results:[{name:str error:i16 error_message:str?}]

DESCRIBE_CONFIGS 1-4 flexible 4
> resources:[{resource_type:i8 resource_name:str configuration_keys:[str]?}] include_synonyms:bool
  include_documentation:bool@3+
< throttle_ms:i32 results:[{error:i16 error_message:str? resource_type:i8 resource_name:str
  configs:[{name:str value:str? read_only:bool config_source:i8 is_sensitive:bool
  synonyms:[{name:str value:str? source:i8}] config_type:i8@3+ documentation:str?@3+}]}]

ALTER_CONFIGS 0-2 flexible 2
> resources:[{resource_type:i8 resource_name:str configs:[{name:str value:str?}]}] validate_only:bool
< throttle_ms:i32 responses:[{error:i16 error_message:str? resource_type:i8 resource_name:str}]

INCREMENTAL_ALTER_CONFIGS 0-1 flexible 1
> resources:[{resource_type:i8 resource_name:str configs:[{name:str config_operation:i8 value:str?}]}]
  validate_only:bool
< throttle_ms:i32 responses:[{error:i16 error_message:str? resource_type:i8 resource_name:str}]

ELECT_LEADERS 0-2 flexible 2
> election_type:i8@1+ topic_partitions:[{topic:str partitions:[i32]}]? timeout_ms:i32
< throttle_ms:i32 error:i16@1+ results:[{topic:str partitions:[{partition_id:i32 error:i16 error_message:str?}]}]

ALTER_PARTITION_REASSIGNMENTS 0-0 flexible 0
> timeout_ms:i32 topics:[{name:str partitions:[{partition_index:i32 replicas:[i32]?}]}]
< throttle_ms:i32 error:i16 error_message:str?
  responses:[{name:str partitions:[{partition_index:i32 error:i16 error_message:str?}]}]

LIST_PARTITION_REASSIGNMENTS 0-0 flexible 0
> timeout_ms:i32 topics:[{name:str partition_indexes:[i32]}]?
< throttle_ms:i32 error:i16 error_message:str? topics:[{name:str
  partitions:[{partition_index:i32 replicas:[i32] adding_replicas:[i32] removing_replicas:[i32]}]}]

DESCRIBE_ACLS 1-3 flexible 2
> resource_type_filter:i8 resource_name_filter:str? pattern_type_filter:i8 principal_filter:str? host_filter:str?
  operation:i8 permission_type:i8
< throttle_ms:i32 error:i16 error_message:str? resources:[{resource_type:i8 resource_name:str pattern_type:i8
  acls:[{principal:str host:str operation:i8 permission_type:i8}]}]

CREATE_ACLS 1-3 flexible 2
> creations:[{resource_type:i8 resource_name:str resource_pattern_type:i8 principal:str host:str operation:i8
  permission_type:i8}]
< throttle_ms:i32 results:[{error:i16 error_message:str?}]

DELETE_ACLS 1-3 flexible 2
> filters:[{resource_type_filter:i8 resource_name_filter:str? pattern_type_filter:i8 principal_filter:str?
  host_filter:str? operation:i8 permission_type:i8}]
< throttle_ms:i32 filter_results:[{error:i16 error_message:str? matching_acls:[{error:i16 error_message:str?
  resource_type:i8 resource_name:str pattern_type:i8 principal:str host:str operation:i8 permission_type:i8}]}]

DESCRIBE_CLIENT_QUOTAS 0-1 flexible 1
> components:[{entity_type:str match_type:i8 match:str?}] strict:bool
< throttle_ms:i32 error:i16 error_message:str?
  entries:[{entity:[{entity_type:str entity_name:str?}] values:[{key:str value:f64}]}]?

ALTER_CLIENT_QUOTAS 0-1 flexible 1
> entries:[{entity:[{entity_type:str entity_name:str?}] ops:[{key:str value:f64 remove:bool}]}] validate_only:bool
< throttle_ms:i32 entries:[{error:i16 error_message:str? entity:[{entity_type:str entity_name:str?}]}]

DESCRIBE_USER_SCRAM_CREDENTIALS 0-0 flexible 0
> users:[{name:str}]?
< throttle_ms:i32 error:i16 error_message:str?
  results:[{user:str error:i16 error_message:str? credential_infos:[{mechanism:i8 iterations:i32}]}]
"""
