"""Services beside the log: what adds its own requests to the modern port, and knows its own state.

A service is a class under the entry-point group ``since2011.services``. The listener knows this interface and no
service by name: the coordinator of groups is one, the coordinator of transactions another.

    start    the service reads what it needs; clients do not come before every service has started
    stop     the port is closed; what the service still has to write is written

Paper: §3.2 needs none of it, "the broker keeps no state about readers".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kafka2011.config import Setting
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.server.handlers.call import Answer, Call
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker

GROUP = "since2011.services"

Handler = Callable[[Call], Coroutine[Any, Any, Answer | None]]
"""Answers one request; None when the client wants no answer."""


class Service(Protocol):
    """The interface of a service. Thread: reactor."""

    SETTINGS: ClassVar[tuple[Setting, ...]]
    COORDINATES: ClassVar[int | None]
    """The key type of FindCoordinator this service answers for: 0 groups, 1 transactions; None: none."""

    def __init__(self, modern: ModernBroker) -> None: ...

    def handlers(self) -> Mapping[ApiKey, Handler]:
        """The requests it answers."""

    async def start(self) -> None:
        """Begin; the cluster's view is known, the port is not open yet."""

    async def stop(self) -> None:
        """End; no client is connected any more."""

    def brokers_changed(self) -> None:
        """Other brokers came or went."""

    async def coordinator_of(self, key: str) -> BrokerAddress:
        """The broker that speaks for ``key``; raises Refused when nobody can just now."""

    def state(self) -> dict[str, Any]:
        """What ``/state`` shows of it, beside what the port shows."""

    def trouble(self) -> str | None:
        """What keeps it from its work just now, in a line for ``/healthz``; None if nothing does."""


class Verifier(Protocol):
    """Who knows which partitions are part of a transaction. Thread: reactor."""

    async def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator, here or elsewhere, before a leader takes a transaction's first batch (KIP-890)."""

    @property
    def verifies(self) -> bool:
        """Whether leaders are to ask at all (``transaction.partition.verification.enable``)."""


def installed() -> dict[str, type[Service]]:
    """The services by name."""
    return {entry.name: entry.load() for entry in entry_points(group=GROUP)}


def settings_of_services() -> tuple[Setting, ...]:
    """What all of them can be told."""
    return tuple(setting for service in installed().values() for setting in service.SETTINGS)
