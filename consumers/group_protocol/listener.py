"""The modern port: a listening socket whose connections speak today's protocol. Spec: modern-group-protocol §1.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from consumers.group_protocol.connection import ModernProtocol
from kafka2011.broker.reactor import ListeningPort
from kafka2011.errors import ConfigError

if TYPE_CHECKING:
    from consumers.group_protocol.service import Modern

BACKLOG = 512


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
    bind = str(modern.broker.config["bind.address"])
    factory = ModernFactory(modern)
    try:
        if modern.broker.tls is None:
            return modern.reactor.listenTCP(port, factory, BACKLOG, bind)
        return modern.reactor.listenSSL(port, factory, modern.broker.tls, BACKLOG, bind)
    except CannotListenError as error:
        raise ConfigError(
            f"cannot listen on {error.interface}:{error.port} for modern clients: {error.socketError}; "
            "choose another modern.port, or 0 for any free one"
        ) from error
