"""What the registries have to tell. Paper: §3.2."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged(Event):
    """The session with ZooKeeper is in another state."""

    section: ClassVar[str] = "§3.2"
    state: str
    session_id: int
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIgnored(Event):
    """A node holds what no writer of ours or of 0.7 writes; it is left alone and read past."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackFailed(Event):
    """A state or watch callback raised; the session goes on."""

    level: ClassVar[int] = logging.ERROR
    callback: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDied(Event):
    """The thread that talks to ZooKeeper has died: the session is lost, and another client is being started."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "§3.2"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRefused(Event):
    """The ZooKeeper that answers is of no use, and somebody must do something; it is asked again every two seconds."""

    level: ClassVar[int] = logging.ERROR
    section: ClassVar[str] = "§3.2"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered(Event):
    """A broker's id, host and port, and topics are in the broker registry."""

    section: ClassVar[str] = "§3.2"
    broker_id: int
    host: str
    port: int
    n_topics: int
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDeregistered(Event):
    """A broker took itself out of the broker registry."""

    section: ClassVar[str] = "§3.2"
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAnnounced(Event):
    """A broker told the registry how many partitions of a topic it has."""

    section: ClassVar[str] = "§3.2"
    topic: str
    n_partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationDelayed(Event):
    """Registration could not be done yet and is tried again; the broker serves meanwhile."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTakenOut(Event):
    """Somebody deleted or changed a node of a living broker; it is written again."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRegistrationAwaited(Event):
    """This broker's own node of its last life is still there; it goes when that session times out."""

    level: ClassVar[int] = logging.WARNING
    section: ClassVar[str] = "§3.2"
    path: str
    up_to_s: float
