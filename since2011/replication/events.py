"""What happens to the replicas of this broker, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipBegun(Event):
    """The controller has made this broker the leader of a partition that has several replicas."""

    topic: str
    partition: int
    leader_epoch: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InSyncSetChanged(Event):
    """A new in-sync set is stored: from now on these replicas are what acks=all waits for."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTruncated(Event):
    """A follower has cut off what its leader does not have."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    log_end_offset: int
    n_offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFailed(Event):
    """A follower cannot go on by itself; it waits until the controller decides anew."""

    level: ClassVar[int] = logging.ERROR
    topic: str
    partition: int
    leader: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderUnreachable(Event):
    """A leader does not answer its follower; it is asked again and again. Told once until it answers."""

    level: ClassVar[int] = logging.WARNING
    leader: int
    n_partitions: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerObeyed(Event):
    """A controller decides from now on what this broker leads."""

    controller_epoch: int
