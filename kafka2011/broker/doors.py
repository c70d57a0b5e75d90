"""The ports of a broker: where each listens, who is let in there, and what to say when one cannot be had.

The 2011 port has no login, so it is guarded by its address (``port.access``) or by client certificates
(``tls.client.ca``); what each door checks is listed in docs/security.md.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError

from kafka2011.broker.addresses import LOOPBACK, is_loopback
from kafka2011.broker.events import OpenToTheNetwork
from kafka2011.broker.reactor import ListeningPort, Reactor
from kafka2011.config import Config
from kafka2011.errors import ConfigError

if TYPE_CHECKING:
    from twisted.internet.ssl import CertificateOptions

BACKLOG = 512

def address_2011(config: Config) -> str | None:
    """Where the 2011 port listens; None where it is off."""
    access = config["port.access"]
    return None if access == "off" else LOOPBACK if access == "loopback" else str(config["bind.address"])


def unguarded_2011(config: Config) -> str | None:
    """The address at which anybody on the network can publish and fetch without saying who they are; None if none."""
    address = address_2011(config)
    guarded = address is None or is_loopback(address) or config["tls.client.ca"] is not None
    return None if guarded else address


def advertised_host(config: Config) -> str:
    """The address told to others: ``hostname``, else where we listen, else (listening everywhere) our own name's."""
    host, bind = config["hostname"], address_2011(config) or str(config["bind.address"])
    if isinstance(host, str):
        return host
    if bind not in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not bound
        return bind
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return LOOPBACK


def cannot_listen(interface: str, port: int, error: OSError) -> str:
    """Why a port cannot be had, and what to change."""
    if error.errno == errno.EADDRINUSE:
        hint = "is another broker running? choose another port, or 0 for any free one"
    elif error.errno == errno.EACCES:
        hint = "ports below 1024 are root's; choose another"
    else:
        hint = "this machine has no such address; see bind.address and admin.address"
    return f"cannot listen on {interface}:{port}: {error.strerror or error}; {hint}"


class Doors:
    """Opens and closes the ports of one broker. Thread: reactor."""

    def __init__(self, config: Config, reactor: Reactor, tls: CertificateOptions | None) -> None:
        self._config, self._reactor, self._tls = config, reactor, tls
        self._ports: list[ListeningPort] = []

    def open(self, port: int, factory: object, address: str) -> ListeningPort:
        """A port for messages, with TLS where this broker has it. Raises ConfigError, and then none stays open."""
        return self._opened(port, factory, address, self._tls)

    def open_admin(self, factory: object) -> int | None:
        """The read-only HTTP port, if one is set; its number."""
        admin = self._config["admin.port"]
        if not isinstance(admin, int):
            return None
        return self._opened(admin, factory, self._config.get("admin.address", str), None).getHost().port

    def close(self) -> list[Deferred[None]]:
        """Close them all; the deferreds fire when they are."""
        ports, self._ports = self._ports, []
        return [port.stopListening() or succeed(None) for port in ports]

    def without_a_lock(self) -> Iterator[OpenToTheNetwork]:
        """Every address, off this machine, where whoever comes is let in."""
        unguarded = unguarded_2011(self._config)
        if unguarded is not None:
            yield OpenToTheNetwork(door="2011 port", address=unguarded)
        admin = self._config.get("admin.address", str)
        if self._config["admin.port"] is not None and not is_loopback(admin):
            yield OpenToTheNetwork(door="admin port", address=admin)

    def _opened(
        self, port: int, factory: object, address: str, tls: CertificateOptions | None
    ) -> ListeningPort:
        try:
            if tls is None:
                opened = self._reactor.listenTCP(port, factory, BACKLOG, address)
            else:
                opened = self._reactor.listenSSL(port, factory, tls, BACKLOG, address)
        except CannotListenError as error:
            self.close()
            raise ConfigError(cannot_listen(error.interface, error.port, error.socketError)) from error
        self._ports.append(opened)
        return opened
