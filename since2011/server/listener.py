"""The modern port: a listening socket whose connections speak today's protocol. See docs/modern-port.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from kafka2011.broker.reactor import ListeningPort
from since2011.server.connection import ModernProtocol

if TYPE_CHECKING:
    from since2011.server.service import ModernBroker


class ModernFactory(Factory):
    """Make a protocol for each connection."""

    noisy = False

    def __init__(self, modern: ModernBroker) -> None:
        self._modern = modern

    def buildProtocol(self, addr: IAddress | None) -> ModernProtocol:
        """One connection, named by its address."""
        return ModernProtocol(self._modern, str(getattr(addr, "host", "unknown")))


def listen(modern: ModernBroker, port: int) -> ListeningPort:
    """Open the port, with TLS where the broker has it."""
    return modern.broker.doors.open(port, ModernFactory(modern), str(modern.broker.config["modern.bind.address"]))
