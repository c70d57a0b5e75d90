"""What happens on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.broker.events import Frequent
from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernPortOpened(Event):
    """Today's protocol is served beside the paper's."""

    host: str
    port: int
    tls: bool
    sasl: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept(Event):
    """A producer sends what a 2011 message has no room for. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str
    principal: str
    topic: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRefused(Event):
    """A producer asked for transactions, which a 2011 log cannot hold. Told once per connection."""

    level: ClassVar[int] = logging.WARNING
    client: str
    peer: str
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersForgotten(Event):
    """More producer ids wrote than ``max.producer.ids`` allows: who wrote longest ago is not remembered any more."""

    level: ClassVar[int] = logging.WARNING
    n_producers: int
    remembered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersInDoubt(Event):
    """The machine went down with batches under way: retries of producers from before are refused."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsCrowded(Event):
    """A wrapper holds more messages than bytes, so some of them share one offset."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    partition: int
    offset: int
    n_messages: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsRefused(Frequent):
    """Somebody asks for more topics than this broker may hold, or for too many at once."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    n_topics: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanged(Event):
    """Other brokers came or went; groups may have a new coordinator."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslRefused(Frequent):
    """Somebody could not show that they are who they say (``user``); the connection ends."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    principal: str
    mechanism: str
    user: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsNotFlushed(Event):
    """The disk refused a flush of the offsets log: commits to that partition fail until a restart."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyingDelayed(Event):
    """ZooKeeper does not take the copies of committed offsets; the newest of each is kept until it does."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    n_offsets: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsNotCopied(Event):
    """The broker stopped before these were copied to ZooKeeper: another coordinator goes on from older ones."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    n_offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorWaits(Event):
    """The offsets of some groups cannot be had yet; their members are told to ask again (14)."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    partitions: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSilenced(Event):
    """ZooKeeper has not answered for nearly a session: others may coordinate these groups; members are told 15."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorBack(Event):
    """ZooKeeper answers, and the groups are still ours; they go on as they were."""

    section: ClassVar[str] = "§3.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsAdopted(Event):
    """Groups of another coordinator go on here, from the copies of their offsets."""

    section: ClassVar[str] = "§3.2"
    partition: int
    n_groups: int
    n_offsets: int
