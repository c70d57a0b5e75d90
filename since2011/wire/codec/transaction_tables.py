"""Requests of transactions, in the notation of ``tables``; fields have Kafka's names.

AddPartitionsToTxn has two shapes: up to version 3 a producer adds partitions to its own transaction; from 4 on brokers
ask about, or add to, several transactions at once (KIP-890).
"""

from __future__ import annotations

TRANSACTION_TABLE = """
ADD_PARTITIONS_TO_TXN 0-5 flexible 3
> transactions:[{transactional_id:str producer_id:i64 epoch:i16 verify_only:bool
  topics:[{name:str partitions:[i32]}]}]@4+
  transactional_id:str@0-3 producer_id:i64@0-3 epoch:i16@0-3 topics:[{name:str partitions:[i32]}]@0-3
< throttle_ms:i32 error:i16@4+ results:[{transactional_id:str
  topics:[{name:str partitions:[{index:i32 error:i16}]}]}]@4+
  topics:[{name:str partitions:[{index:i32 error:i16}]}]@0-3

ADD_OFFSETS_TO_TXN 0-4 flexible 3
> transactional_id:str producer_id:i64 epoch:i16 group:str
< throttle_ms:i32 error:i16

END_TXN 0-4 flexible 3
> transactional_id:str producer_id:i64 epoch:i16 commit:bool
< throttle_ms:i32 error:i16

WRITE_TXN_MARKERS 0-1 flexible 1
> markers:[{producer_id:i64 epoch:i16 commit:bool topics:[{name:str partitions:[i32]}] coordinator_epoch:i32}]
< markers:[{producer_id:i64 topics:[{name:str partitions:[{index:i32 error:i16}]}]}]

TXN_OFFSET_COMMIT 0-4 flexible 3
> transactional_id:str group:str producer_id:i64 epoch:i16 generation:i32@3+=-1 member:str@3+ instance:str?@3+
  topics:[{name:str partitions:[{index:i32 offset:i64 leader_epoch:i32@2+=-1 metadata:str?}]}]
< throttle_ms:i32 topics:[{name:str partitions:[{index:i32 error:i16}]}]

DESCRIBE_PRODUCERS 0-0 flexible 0
> topics:[{name:str partitions:[i32]}]
< throttle_ms:i32 topics:[{name:str partitions:[{index:i32 error:i16 error_message:str?
  active_producers:[{producer_id:i64 producer_epoch:i32 last_sequence:i32=-1 last_timestamp:i64=-1
  coordinator_epoch:i32 current_txn_start_offset:i64=-1}]}]}]

DESCRIBE_TRANSACTIONS 0-0 flexible 0
> transactional_ids:[str]
< throttle_ms:i32 transactions:[{error:i16 transactional_id:str state:str timeout_ms:i32 start_ms:i64 producer_id:i64
  epoch:i16 topics:[{name:str partitions:[i32]}]}]

LIST_TRANSACTIONS 0-1 flexible 0
> state_filters:[str] producer_id_filters:[i64] duration_filter:i64@1+=-1
< throttle_ms:i32 error:i16 unknown_state_filters:[str]
  transactions:[{transactional_id:str producer_id:i64 state:str}]
"""
