"""The modern port: a listening socket whose connections speak today's protocol. Spec: modern-group-protocol §1.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from consumers.group_protocol.connection import ModernProtocol
from kafka2011.broker.reactor import ListeningPort

if TYPE_CHECKING:
    from consumers.group_protocol.service import Modern

class ModernFactory(Factory):
    """Make a protocol for each connection."""

    noisy = False

    def __init__(self, modern: Modern) -> None:
        self._modern = modern

    def buildProtocol(self, addr: IAddress | None) -> ModernProtocol:
        """One connection, named by its address."""
        return ModernProtocol(self._modern, str(getattr(addr, "host", "unknown")))


def listen(modern: Modern, port: int) -> ListeningPort:
    """Open the port, with TLS where the broker has it."""
    return modern.broker.doors.open(port, ModernFactory(modern), str(modern.broker.config["modern.bind.address"]))
