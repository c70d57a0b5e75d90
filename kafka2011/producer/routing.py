"""Which brokers there are and which partitions a topic has: what a producer must know before it can send.

Two ways to know it, as in 2011: a fixed list (``StaticRouter``), or the broker registry in ZooKeeper
(``zk_registry.router``). The producer sees only the ``Router`` protocol.

Paper: §3.2 (the broker registry), §3 (a producer publishes to a randomly or semantically chosen partition).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from importlib.metadata import entry_points
from typing import Protocol

from kafka2011.errors import ConfigError, ConnectionFailed
from kafka2011.types import BrokerAddress, BrokerPartition

ANY_PARTITION = -1
"""On the wire: let the broker pick one of its partitions at random (docs/protocol.md)."""


class Router(Protocol):
    """What a producer asks of its discovery. Thread: any."""

    def partitions(self, topic: str) -> Sequence[BrokerPartition]:
        """The candidates for ``topic``, in numeric order; empty when no broker is alive."""

    def address(self, broker_id: int) -> BrokerAddress:
        """Where a broker listens; raises ConnectionFailed if it is not known (any more)."""

    def holders(self, topic: str) -> Set[int]:
        """The brokers known to have ``topic``, by id."""

    def refresh(self) -> None:
        """Look again: a broker just failed to answer."""

    def close(self) -> None:
        """Let go of connections."""


class StaticRouter:
    """A fixed list of brokers, 0.7's ``broker.list``. Thread: any.

    Each broker is one candidate, partition -1: the broker picks. Given the ``partitions`` every broker has, those are
    the candidates, and keys decide among them.
    """

    def __init__(self, brokers: Sequence[BrokerAddress], partitions: Sequence[int] = (ANY_PARTITION,)) -> None:
        self._brokers = {broker.broker_id: broker for broker in brokers}
        if not brokers:
            raise ConfigError("the broker list is empty; name at least one broker as HOST:PORT")
        if len(self._brokers) != len(brokers):
            raise ConfigError("two brokers of the list have the same id; ids must differ")
        self.knows_partitions = ANY_PARTITION not in partitions
        self._candidates = [BrokerPartition(b, p) for b in sorted(self._brokers) for p in sorted(partitions)]

    def partitions(self, topic: str) -> Sequence[BrokerPartition]:
        return self._candidates

    def address(self, broker_id: int) -> BrokerAddress:
        try:
            return self._brokers[broker_id]
        except KeyError:
            raise ConnectionFailed(f"broker {broker_id} is not in the broker list") from None

    def holders(self, topic: str) -> Set[int]:
        """Every broker: a list says nothing about topics, and a broker creates one when it is first written to."""
        return self._brokers.keys()

    def refresh(self) -> None:
        """Nothing to do: the list is fixed."""

    def close(self) -> None:
        """Nothing to do."""


def zookeeper_router(connect: str) -> Router:
    """A router over the broker registry at ``connect``: a plug-in, since this package knows no ZooKeeper."""
    for plugin in entry_points(group="kafka2011.routers", name="zookeeper"):
        try:
            make: Callable[[str], Router] = plugin.load()
        except ModuleNotFoundError:
            break
        return make(connect)
    raise ConfigError("finding brokers in ZooKeeper needs the package kazoo: pip install 'kafka2011[zk]'")


def parse_brokers(text: str) -> list[BrokerAddress]:
    """Read ``host:port,host:port`` (ids count from 0) or 0.7's ``id:host:port,…``."""
    brokers = []
    for position, entry in enumerate(filter(None, (part.strip() for part in text.split(",")))):
        head, _, port = entry.rpartition(":")
        first, colon, rest = head.partition(":")
        numbered = bool(colon) and first.isdecimal()
        host = (rest if numbered else head).strip("[]")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"{entry!r} in the broker list is neither HOST:PORT nor ID:HOST:PORT")
        brokers.append(BrokerAddress(int(first) if numbered else position, host, int(port)))
    return brokers
