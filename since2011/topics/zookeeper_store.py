"""A cluster's metadata in ZooKeeper, in the nodes real Kafka writes: read once, then only what has changed.

    watch fires   its path is noted, nothing else: it comes in ZooKeeper's thread
    the worker    reads the noted paths again, all in one go, and leaves new watches on them; then a new image is there
    connection lost and back, or a new session: everything is read again, and this broker registers again

So a topic that is made costs the reading of one topic, whatever the number of topics. While ZooKeeper is away the last
image stays, and ``trouble`` says why.

Without an elected controller, the broker that finds a partition without a state of which it is the first replica writes
one, and whoever finds a topic half deleted finishes that: what a creator or deleter that crashed has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.events import Journal
from since2011.topics.errors import InvalidPartitions, TopicExists, UnknownTopic
from since2011.topics.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from since2011.topics.placement import Assignments
from since2011.topics.reading import Reading
from since2011.topics.store import ConfigChange, ImageCallback, Settings
from zk_registry.events import RegistrationDelayed
from zk_registry.modern import paths
from zk_registry.modern.registration import ModernRegistration
from zk_registry.modern.registry import ModernRegistry, new_uuid
from zk_registry.modern.texts import Assignment, BrokerEntry
from zk_registry.operations import Exists, NodeExists, NoNode, RegistryError
from zk_registry.registration import BrokerIdTaken
from zk_registry.states import Session, SessionState

_RETRY_S = 0.5
PATIENCE_S = 5.0
"""How long the controller is waited for."""
_LOOK_S = 0.05


class ZooKeeperStore:
    """Metadata in ZooKeeper. Thread: any; it has one of its own, and a session of its own below the chroot."""

    def __init__(
        self,
        session: Session,
        broker_id: int,
        *,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
        patience_s: float = PATIENCE_S,
        replicates: bool = True,
    ) -> None:
        """``session`` has the modern chroot as its root; it is started and closed here.

        ``replicates``: this broker can talk to others, so that there is a controller, and more than one copy.
        """
        self.replicates = replicates
        self._patience_s = patience_s
        self._session, self._broker_id = session, broker_id
        self._journal, self._clock = journal or Journal(), clock
        self._registry = ModernRegistry(session, journal=journal)
        self._reading = Reading(self._registry, self._note)
        self._image = ClusterImage("")
        self._callbacks: list[ImageCallback] = []
        self._changing = threading.RLock()
        """Held while an image is made out of the last one."""
        self._told = threading.Condition()
        """Told of each new image."""
        self._noted: set[str] = set()
        self._noting = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._registration: ModernRegistration | None = None
        self._incarnation = 0
        self._failure: str | None = None
        self._worker = threading.Thread(target=self._work, name="modern-metadata", daemon=True)

    @property
    def image(self) -> ClusterImage:
        return self._image

    @property
    def trouble(self) -> str | None:
        return self._session.trouble or self._failure

    @property
    def session(self) -> Session:
        """With the modern chroot as its root."""
        return self._session

    @property
    def broker_epoch(self) -> int:
        """The number of this broker's registration; -1 before the first."""
        return -1 if self._registration is None else self._registration.epoch

    @property
    def term(self) -> int:
        """Which of the sessions that registration was made in."""
        return 0 if self._registration is None else self._registration.term

    def start(self) -> None:
        """Connect, make what a real broker expects to find, read everything."""
        self._session.start()
        self._session.on_state(self._state_changed)
        self._image = ClusterImage(self._registry.prepare())
        self._incarnation = self._session.incarnation
        self._finish_deletions()
        self._refresh(None)
        self._worker.start()

    def register(self, broker: BrokerImage) -> None:
        """Register; BrokerIdTaken if another broker has the id."""
        entry = BrokerEntry(broker.endpoints, broker.rack, self._clock.wall_ms())
        registration = ModernRegistration(self._session, self._broker_id, entry, clock=self._clock, on_doubt=self._note)
        registration.reconcile()
        self._registration = registration
        self._refresh({paths.BROKER_IDS})
        self._complete()

    def close(self) -> None:
        self._closed.set()
        self._wake.set()
        self._session.close()
        if self._worker.is_alive() and threading.current_thread() is not self._worker:
            self._worker.join(2.0)

    def on_change(self, callback: ImageCallback) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    # -- changing -------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, assignments: Assignments, settings: Settings, topic_id: UUID | None = None
    ) -> TopicImage:
        try:
            self._registry.create_topic(name, Assignment(assignments, topic_id or new_uuid()), settings)
        except NodeExists as error:
            raise TopicExists(f"{name} is there already") from error
        return self._led(name)

    def delete_topic(self, name: str) -> None:
        try:
            self._registry.delete_topic(name)
        except NoNode as error:
            self._refresh({paths.topic(name)})
            raise UnknownTopic(f"there is no topic {name}") from error
        self._refresh({paths.topic(name), paths.DELETIONS})
        # The controller removes the nodes when every replica is gone; one whose broker is away is not waited for.
        self._wait(lambda: self._session.perform(Exists(paths.topic(name))) is None)

    def add_partitions(self, name: str, assignments: Assignments) -> TopicImage:
        def grown(before: Assignment) -> Assignment:
            n = len(before.partitions)
            if sorted(assignments) != list(range(n, n + len(assignments))):
                raise InvalidPartitions(f"{name} has {n} partitions by now; ask again")
            return replace(before, partitions={**before.partitions, **assignments})

        try:
            self._registry.add_partitions(name, grown)
        except NoNode as error:
            raise UnknownTopic(f"there is no topic {name}") from error
        return self._led(name)

    def alter_config(self, entity: str, change: ConfigChange) -> None:
        self._registry.alter_config(entity, change)
        self._refresh({paths.config(entity)})

    def take_producer_ids(self, at_least: int = 0) -> range:
        return self._registry.take_producer_ids(self._broker_id, at_least)

    def _led(self, name: str) -> TopicImage:
        """The topic in the image, when the controller has chosen its leaders; or without, if that takes long."""
        self._seen(name)
        self._wait(lambda: all(part.leader_epoch >= 0 for part in self._partitions(name)))
        return self._seen(name)

    def _partitions(self, name: str) -> tuple[PartitionImage, ...]:
        topic = self._image.topics.get(name)
        return () if topic is None else topic.partitions

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait until the controller has done its part, but not for long."""
        deadline = self._clock.monotonic() + self._patience_s
        while not done() and self._clock.monotonic() < deadline and not self._closed.is_set():
            with self._told:
                self._told.wait(_LOOK_S)

    def _seen(self, name: str) -> TopicImage:
        """The topic in the image, now that it has been written."""
        self._refresh({paths.topic(name)})
        topic = self._image.topics.get(name)
        if topic is None:
            raise UnknownTopic(f"{name} was deleted by somebody else at the same moment")
        return topic

    # -- seeing ---------------------------------------------------------------------------------------------------

    def _refresh(self, noted: Iterable[str] | None) -> None:
        """Read these paths again, or with None everything, and tell if the image is another one then."""
        with self._changing:
            before = self._image
            try:
                after = self._reading.everything(before) if noted is None else self._reading.again(before, noted)
            except RegistryError:
                self._note("/")  # which watches were left, and what was read, nobody knows
                raise
            self._image = after
            with self._told:
                self._told.notify_all()
            if after is not before:
                for callback in tuple(self._callbacks):
                    callback(after)

    def _note(self, path: str) -> None:
        """A watch fired, in whatever thread."""
        with self._noting:
            self._noted.add(path)
        self._wake.set()

    def _state_changed(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._note("/")

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.wait()
            self._wake.clear()
            with self._noting:
                noted, self._noted = self._noted, set()
            if not noted or self._closed.is_set():
                continue
            try:
                self._look(noted)
                self._failure = None
            except (RegistryError, BrokerIdTaken, ValueError) as error:
                if self._closed.is_set():
                    return
                if self._failure is None:
                    self._journal.emit(RegistrationDelayed(reason=str(error)))
                self._failure = str(error)
                with self._noting:
                    self._noted |= noted
                self._closed.wait(_RETRY_S)
                self._wake.set()

    def _look(self, noted: set[str]) -> None:
        self._reading.unwatched(noted)
        if self._registration is not None:
            self._registration.reconcile()
        whole = "/" in noted
        if whole:
            self._registry.prepare()
        self._refresh(None if whole else noted)
        self._complete()

    def _complete(self) -> None:
        """Write the states that whoever made or grew a topic did not come to write."""
        if self._image.elected_controller is None and self._registration is not None:
            missing = self._reading.missing_states(self._image, self._broker_id)
            if missing:
                self._registry.add_states(missing)
                self._refresh({paths.topic(name) for name, _ in missing})

    def _finish_deletions(self) -> None:
        if self._registry.controller() is None:
            for name in self._registry.children(paths.DELETIONS):
                self._registry.finish_deletion(name)
