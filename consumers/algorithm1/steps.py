"""What the rebalance asks of its own process, beside the registry operations it asks of ZooKeeper.

A driver (a thread on a real session, or the simulator) performs each step and sends the answer back in:

| step | answer |
|---|---|
| a registry Operation | see ``zk_registry.operations``; a RegistryError is thrown in |
| Stop(partitions) | offsets of what the application finished, for each stopped partition |
| Progress() | the same, for all that runs |
| Start(claims) | None; fetchers pull the claimed partitions from their offsets |
| NewSession() | None, once a new session is connected |
| Wait(seconds) | None, after this long or as soon as something changed |

Paper: §3.2, "invoke a thread to pull data in partition p from offset Op".
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from consumers.algorithm1.assign import ThreadId
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry.operations import Operation


class Owned(NamedTuple):
    """A partition of a topic somewhere in the cluster: what one owner node stands for."""

    topic: str
    partition: BrokerPartition

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Claim:
    """An owned partition with all that is needed to read it; ``offset`` None = nothing stored yet."""

    owned: Owned
    thread: ThreadId
    address: BrokerAddress
    offset: int | None


@dataclass(frozen=True, slots=True)
class Stop:
    """End delivery of ``partitions`` (None = of all) and say how far the application got."""

    partitions: frozenset[Owned] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Pull these claims, beside what runs already."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass; something that changes the picture ends the wait early."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Say how far the application got; delivery goes on."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """The old session is over: wait until there is a new one."""


Step = Operation | Stop | Start | Wait | Progress | NewSession
Positions = Mapping[Owned, int]
T = TypeVar("T")
Steps = Generator[Step, Any, T]
"""A part of the protocol: yields steps, receives answers, returns a T."""
