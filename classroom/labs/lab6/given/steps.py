"""The steps your consumer may take. Given; changes to this file are not used.

``life()`` is a generator. Each ``yield`` of a step gives its answer, or raises one of the errors below:

    names = yield Children("/consumers/g/ids", watch=True)

| step | answer | may raise |
|---|---|---|
| Children(path, watch) | list of names | NoNode |
| Get(path, watch) | (value, session of its owner; 0: not ephemeral) | NoNode |
| Exists(path, watch) | session of its owner (0: not ephemeral), or None | |
| Create(path, value, ephemeral) | None; parents that are missing are made | NodeExists |
| Set(path, value) | None | NoNode |
| Delete(path) | None | NoNode |
| DeleteIfMine(path) | True if it was this session's and is gone now | |
| Multi(operations) | None: all of Create, Set and Delete, or none | the first error |
| Session() | the number of this session | |
| Progress() | {partition: next offset} of what is being read | |
| Stop() | the same, and nothing is read any more | |
| Start({partition: offset}) | None; those partitions are read, beside what is read already | |
| Wait(seconds) | "changed": a watch fired since the last Wait; "leave": you are asked to leave; "time" | |
| NewSession() | None, once there is a new session after SessionExpired | |

Every operation on the registry may also raise ConnectionLoss (perhaps done, perhaps not) and SessionExpired (your
ephemeral nodes are gone; yield NewSession() next).
"""

from __future__ import annotations

from dataclasses import dataclass


class NoNode(Exception):
    """There is no such node."""


class NodeExists(Exception):
    """The node is there already, yours or somebody else's."""


class ConnectionLoss(Exception):
    """The answer did not come: the operation may have happened, or not."""


class SessionExpired(Exception):
    """Your session is over; its ephemeral nodes are gone."""


@dataclass(frozen=True)
class Children:
    path: str
    watch: bool = False


@dataclass(frozen=True)
class Get:
    path: str
    watch: bool = False


@dataclass(frozen=True)
class Exists:
    path: str
    watch: bool = False


@dataclass(frozen=True)
class Create:
    path: str
    value: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True)
class Set:
    path: str
    value: bytes


@dataclass(frozen=True)
class Delete:
    path: str


@dataclass(frozen=True)
class DeleteIfMine:
    path: str


@dataclass(frozen=True)
class Multi:
    operations: list[object]


@dataclass(frozen=True)
class Session:
    pass


@dataclass(frozen=True)
class Progress:
    pass


@dataclass(frozen=True)
class Stop:
    pass


@dataclass(frozen=True)
class Start:
    offsets: dict[str, int]


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class NewSession:
    pass
