"""The operations Algorithm 1 may ask of a registry, as values.

``rebalance()`` yields these and receives answers; a worker thread performs them on a real ZooKeeper
(``session.ZooKeeperSession``), the simulator performs the same values on a ``fake.FakeSession`` in virtual time. The
two are checked against each other with random sequences.

| operation | answer | refused with |
|---|---|---|
| Children(path, watch) | sorted tuple of names | NoNode |
| Get(path, watch) | Node(value, version, ephemeral_owner, czxid) | NoNode |
| Exists(path, watch) | Node without value, or None | |
| Create(path, value, ephemeral, sequential) | the path; if sequential, with ten digits added | NodeExists, NoNode |
| Set(path, value, version) | new version | NoNode, BadVersion |
| Delete(path, version) | None | NoNode, BadVersion, NotEmpty |
| DeleteIfMine(path) | True if deleted; False if absent or a stranger's | |
| Sync(path) | None | |
| Multi(operations) | None: all or nothing (Create, Set, Delete, Check) | the first refusal |
| Check(path, version) | only inside Multi: the node must exist | NoNode, BadVersion |
| Pipeline(operations) | a tuple: for each its answer, or the RegistryError it was refused with | |

A watch is one-shot. Its watcher is also called when the connection is lost, because the watch is lost with it: a call
means "look again", not "it changed". A refused Get or Children leaves no watch; an Exists that answers None does.

The operations of a pipeline are sent one behind the other without waiting, performed in that order, and awaited
together: thousands of nodes are read in the time of a few. It is no transaction: each has its own answer.

``ConnectionLoss`` may come from any of them and means *perhaps done*; ``SessionExpired`` means the session and
all its ephemerals are gone. Ephemeral ownership is this session's id: ``Node.ephemeral_owner == registry.session_id``.

Paper: §3.2, "Zookeeper ... has a very simple, file system like API".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from kafka2011.errors import Kafka2011Error


@dataclass(frozen=True, slots=True)
class Children:
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Get:
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    value: bytes | None = b""
    """None is a node without data, which a Java program can tell from an empty one."""
    ephemeral: bool = False
    make_parents: bool = False
    sequential: bool = False
    """The server adds how many children the parent was given before: ``/changes/change_`` + ``0000000007``."""


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    value: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class DeleteIfMine:
    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    path: str


@dataclass(frozen=True, slots=True)
class Check:
    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Multi:
    operations: tuple[Create | Set | Delete | Check, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    operations: tuple[Children | Get | Exists | Create | Set | Delete | Multi, ...]


Operation = Children | Get | Exists | Create | Set | Delete | DeleteIfMine | Sync | Multi | Pipeline


@dataclass(frozen=True, slots=True)
class Node:
    """What is known of a znode; ``ephemeral_owner`` is 0 for a persistent one."""

    value: bytes
    version: int
    ephemeral_owner: int = 0
    czxid: int = 0
    """The server's number of the change that created it: another one, another node. A broker's epoch since 2011."""


class RegistryError(Kafka2011Error):
    """A registry refused or could not answer. ``path`` says where."""

    def __init__(self, path: str, text: str = "") -> None:
        self.path = path
        super().__init__(f"{type(self).__name__} at {path}" + (f": {text}" if text else ""))


class NoNode(RegistryError):
    """There is no such node."""


class NodeExists(RegistryError):
    """The node is there already."""


class BadVersion(RegistryError):
    """Someone wrote in between."""


class NotEmpty(RegistryError):
    """The node still has children."""


class EphemeralParent(RegistryError):
    """The parent is ephemeral, and such a node cannot have children."""


class NoAuth(RegistryError):
    """The node's access list does not let this session do that; check the credential."""


class ValueTooLarge(RegistryError):
    """The value is over 100 KB: ZooKeeper answers a very large one by closing the connection, so none is sent."""


class ConnectionLoss(RegistryError):
    """The answer did not come: the operation may or may not have happened."""

    retriable: ClassVar[bool] = True
    definite: ClassVar[bool] = False


class SessionExpired(RegistryError):
    """The session is over and its ephemerals are gone."""


class Registry(Protocol):
    """Performs operations for one session."""

    @property
    def session_id(self) -> int: ...

    def perform(self, operation: Operation, watcher: Callable[[str], None] | None = None) -> Any:
        """Do it, or raise a RegistryError. ``watcher(path)`` is called at most once when a watched node changes."""
