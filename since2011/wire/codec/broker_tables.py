"""Requests between brokers, in the notation of ``tables``; fields have Kafka's names.

Which version is sent is not agreed upon but follows from ``inter.broker.protocol.version``, here 2.6: the last before
leaders ask the controller for every change of the in-sync replicas, and the first whose StopReplica cannot remove a
replica that has come back since (KIP-570). So each has one version.
"""

from __future__ import annotations

BROKER_TABLE = """
LEADER_AND_ISR 4-4 flexible 4
> controller_id:i32 controller_epoch:i32 broker_epoch:i64=-1 topics:[{name:str partitions:[{index:i32
  controller_epoch:i32 leader:i32 leader_epoch:i32 isr:[i32] partition_epoch:i32 replicas:[i32] adding:[i32]
  removing:[i32] is_new:bool}]}] live_leaders:[{id:i32 host:str port:i32}]
< error:i16 partitions:[{topic:str index:i32 error:i16}]

STOP_REPLICA 3-3 flexible 2
> controller_id:i32 controller_epoch:i32 broker_epoch:i64=-1 topics:[{name:str
  partitions:[{index:i32 leader_epoch:i32=-1 delete:bool}]}]
< error:i16 partitions:[{topic:str index:i32 error:i16}]

UPDATE_METADATA 6-6 flexible 6
> controller_id:i32 controller_epoch:i32 broker_epoch:i64=-1 topics:[{name:str partitions:[{index:i32
  controller_epoch:i32 leader:i32 leader_epoch:i32 isr:[i32] partition_epoch:i32 replicas:[i32] offline:[i32]}]}]
  brokers:[{id:i32 endpoints:[{port:i32 host:str listener:str security_protocol:i16}] rack:str?}]
< error:i16

CONTROLLED_SHUTDOWN 3-3 flexible 3
> broker_id:i32 broker_epoch:i64=-1
< error:i16 remaining:[{topic:str index:i32}]
"""
