"""What the two kinds of membership have in common: a coordinator to talk to, a thread that heartbeats, a share.

See docs/group-protocol.md (client side). ``advance`` runs in the application's poll; the heartbeat thread
keeps the session alive and sets flags. An application that does not poll for max.poll.interval is taken for stuck: the
member leaves the group by itself, and joins again at the next poll.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ConnectionFailed, Kafka2011Error, RequestTimedOut
from kafka2011.types import TopicPartition
from since2011.client.cluster import Cluster
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.05, 2.0
Partitions = frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a member brings along, in milliseconds like everyone's settings."""

    group: str
    client_id: str
    instance: str | None = None
    session_ms: int = 45_000
    heartbeat_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    assignor: str = "range"


@dataclass(frozen=True, slots=True)
class Change:
    """What the application must do before the protocol goes on: let go, or take."""

    revoked: Partitions = frozenset()
    assigned: Partitions = frozenset()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """What the metadata tells of the topics a member wants."""

    counts: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, known in self.ids.items() if known == topic_id), None)


class Membership(ABC):
    """Thread: ``advance``, ``applied`` and ``leave`` in the application's; ``_beat`` in its own."""

    first_generation: ClassVar[int]
    """What is smaller is nobody's generation or epoch."""

    def __init__(self, settings: Settings, cluster: Cluster, clock: Clock = SYSTEM_CLOCK) -> None:
        self.settings, self.cluster, self.clock = settings, cluster, clock
        self.topics: Callable[[], KnownTopics] = KnownTopics
        """What the cluster has of the subscribed topics; set by whoever subscribes."""
        self.wanted: tuple[str, ...] = ()
        self.owned: Partitions = frozenset()
        self.lock = threading.RLock()
        self._wake = threading.Event()
        self._stopped = False
        self._last_poll = clock.monotonic()
        self._beats: ModernConnection | None = None
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{settings.group}", daemon=True)
        self._thread.start()

    # In the poll

    @abstractmethod
    def advance(self, wait_s: float) -> Change | None:
        """Drive the protocol; a Change must be carried out and then confirmed by ``applied``."""

    @abstractmethod
    def applied(self, change: Change) -> None:
        """The application has let go, or taken."""

    @abstractmethod
    def credentials(self) -> tuple[str, int, int]:
        """Member id, generation or epoch, and the version of OffsetCommit that carries them."""

    @abstractmethod
    def say_goodbye(self) -> None:
        """Tell the coordinator; best effort."""

    @abstractmethod
    def rejoin(self) -> None:
        """The subscription changed."""

    def polled(self) -> None:
        """The application is alive."""
        self._last_poll = self.clock.monotonic()

    def leave(self) -> None:
        """End the heartbeats and leave."""
        self._stopped = True
        self._wake.set()
        self._thread.join(5.0)
        try:
            self.say_goodbye()
        except Kafka2011Error:
            pass  # the session timeout says it for us
        if self._beats is not None:
            self._beats.close()

    # In the heartbeat thread

    @abstractmethod
    def beat(self) -> float:
        """Send what is due; return the seconds until the next."""

    @abstractmethod
    def forfeit(self) -> None:
        """Leave because the application does not poll."""

    def ask_coordinator(self, key: ApiKey, version: int, body: Struct) -> Struct:
        """Ask over the heartbeat thread's own connection, so that a parked join is not in the way."""
        if self._beats is None:
            self._beats = self.cluster_for_beats().coordinator(self.settings.group)
        try:
            return self._beats.ask(key, version, body)
        except Kafka2011Error:
            self.coordinator_moved()
            raise

    def coordinator_moved(self) -> None:
        """Look for the coordinator anew at the next heartbeat."""
        beats, self._beats = self._beats, None
        if beats is not None:
            beats.close()

    def cluster_for_beats(self) -> Cluster:
        """A cluster of its own: connections belong to one thread."""
        return self.cluster.twin()

    def wake(self) -> None:
        """Heartbeat at once."""
        self._wake.set()

    def _run(self) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while not self._stopped:
            try:
                if self.clock.monotonic() - self._last_poll > self.settings.max_poll_interval_ms / 1000:
                    self.forfeit()
                pause_s = self.beat()
                backoff_s = _FIRST_BACKOFF_S
            except (ConnectionFailed, RequestTimedOut):
                # The coordinator is away or moving; the session timeout decides how long that may last.
                pause_s, backoff_s = backoff_s, min(backoff_s * 2, _LONGEST_BACKOFF_S)
            self._wake.wait(pause_s)
            self._wake.clear()
