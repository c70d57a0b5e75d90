"""What a logical broker has in ZooKeeper beside 0.7's nodes, and the operations on it.

    /brokers/ids/<id>                          0.7's, ephemeral: held by the member that leads; its czxid is the epoch
    /kafka2011/standby/<id>                    the in-sync set; whoever writes it names the version it has read
    /kafka2011/standby/<id>/members/<member>   ephemeral: "<disk> <host>:<port>", the port of its read-only HTTP

An election is one transaction: the set is still the one that was read, and nobody holds the broker's node.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka2011.types import BrokerAddress
from since2011.standby.in_sync import InSync, decode
from zk_registry import paths
from zk_registry.brokers import encode_broker, parse_broker
from zk_registry.operations import (
    BadVersion,
    Children,
    ConnectionLoss,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    NodeExists,
    NoNode,
    Registry,
    Set,
)

Watcher = Callable[[str], None]


class StandbyRegistry:
    """The nodes of one logical broker, for one member. Thread: one."""

    def __init__(self, registry: Registry, broker_id: int, member: str, disk: str) -> None:
        self._registry, self._broker_id, self._member, self._disk = registry, broker_id, member, disk
        self._id_path = paths.broker_id(broker_id)
        self._path = paths.standby(broker_id)

    def enter(self, address: str) -> None:
        """Say that this member is there, with this disk. A node of a former life goes first."""
        path, text = f"{self._path}/members/{self._member}", f"{self._disk} {address}".encode()
        try:
            self._registry.perform(Create(path, text, ephemeral=True, make_parents=True))
        except NodeExists:
            try:
                node: Node = self._registry.perform(Get(path))
                if node.ephemeral_owner == self._registry.session_id:
                    return
                if not node.value.startswith(self._disk.encode()):
                    raise  # somebody else's, or that of a disk that was replaced: it ends with its session
                self._registry.perform(Delete(path, node.version))
            except NoNode:
                pass
            self._registry.perform(Create(path, text, ephemeral=True))

    def leader(self, watcher: Watcher) -> tuple[BrokerAddress | None, int] | None:
        """Address and epoch of who leads; None if nobody does. ``watcher`` is called when that changes."""
        while True:
            try:
                node: Node = self._registry.perform(Get(self._id_path, watch=True), watcher)
                return parse_broker(str(self._broker_id), node.value), node.czxid
            except NoNode:
                if self._registry.perform(Exists(self._id_path, watch=True), watcher) is None:
                    return None

    def in_sync(self) -> InSync | None:
        """The set as it stands there; None if this broker never had members."""
        try:
            node: Node = self._registry.perform(Get(self._path))
        except NoNode:
            return None
        return decode(node.value, node.version) if node.value else None

    def alive(self) -> dict[str, str]:
        """The members that are there, with their disks."""
        found = {}
        try:
            names: tuple[str, ...] = self._registry.perform(Children(f"{self._path}/members"))
        except NoNode:
            return {}
        for name in names:
            try:
                found[name] = self._registry.perform(Get(f"{self._path}/members/{name}")).value.decode().split(" ")[0]
            except NoNode:
                continue
        return found

    def run(self, wanted: InSync, address: BrokerAddress, started_ms: int) -> tuple[int, int] | None:
        """Run for leadership with this in-sync set: epoch and version of the set if we won, None if not."""
        text = encode_broker(address.host, address.port, started_ms)
        self._make_parents()
        version = wanted.version if wanted.version >= 0 else 0
        ours = Multi((Set(self._path, wanted.encode(), version), Create(self._id_path, text, ephemeral=True)))
        try:
            self._registry.perform(ours)
        except (BadVersion, NodeExists, NoNode):
            return None
        except ConnectionLoss:
            pass  # perhaps done: whose the node is will tell
        try:
            node: Node = self._registry.perform(Get(self._id_path))
        except NoNode:
            return None
        return (node.czxid, version + 1) if node.ephemeral_owner == self._registry.session_id else None

    def store(self, wanted: InSync) -> int | None:
        """Write a new in-sync set over the version it names: the new version, or None if somebody else wrote."""
        try:
            return int(self._registry.perform(Set(self._path, wanted.encode(), wanted.version)))
        except BadVersion:
            node: Node = self._registry.perform(Get(self._path))
            # An answer that was lost: what we read is what we wrote.
            ours = node.version == wanted.version + 1 and node.value == wanted.encode()
            return node.version if ours else None

    def _make_parents(self) -> None:
        for path in ("/brokers/ids", self._path):
            try:
                self._registry.perform(Create(path, make_parents=True))
            except NodeExists:
                pass
