"""Addresses as a person writes them, and whose they are.

Today's port tells which brokers there are by their ids; where their 2011 ports are it does not tell. An address without
an id says nothing about whose log is behind it: its place in a list changes with every broker that is down. So each is
written with its id, unless there is only one broker.
"""

from __future__ import annotations

from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress
from since2011.client.cluster import Topics


def read_addresses(text: str) -> list[tuple[str, int]]:
    """Read ``host:port,host:port``."""
    found = []
    for part in text.split(","):
        host, _, port = part.strip().rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{part!r} is not HOST:PORT")
        found.append((host, int(port)))
    return found


def read_brokers(text: str, topics: Topics) -> list[BrokerAddress]:
    """Read ``id@host:port,id@host:port``; one ``host:port`` alone is the only broker's, if there is only one.

    ``topics`` is what the metadata says: it knows brokers that are down, too, by the partitions they hold.
    """
    known = topics.brokers.keys() | {place.broker_id for place in topics.places.values()}
    found: dict[int, BrokerAddress] = {}
    for part in text.split(","):
        number, at, address = part.strip().rpartition("@")
        if at and not (number.isascii() and number.isdigit()):
            raise ValueError(f"{part!r} is not ID@HOST:PORT")
        if not at and (len(known) != 1 or "," in text):
            raise ConfigError(
                f"whose address is {part.strip()}? The cluster has the brokers {', '.join(map(str, sorted(known)))}: "
                "write ID@HOST:PORT,... with the id of each"
            )
        broker_id = int(number) if at else next(iter(known))
        if broker_id in found:
            raise ValueError(f"broker {broker_id} has two addresses in {text!r}")
        ((host, port),) = read_addresses(address)
        found[broker_id] = BrokerAddress(broker_id, host, port)
    return list(found.values())
