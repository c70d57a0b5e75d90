"""One consumer of a group, from registration to leaving: the life around Algorithm 1, without threads.

``Member.life`` yields steps and receives answers, like ``rebalance``. States:

    registering -> serving: the id node is ours; nothing is owned yet
    serving -> serving: something watched changed (``dirty``): rebalance; a commit is due: commit
    serving -> registering: the session is lost: forget ownership, take a new id, start again
    serving -> left: ``closing``: stop, commit, release, remove the id node

A watch only sets ``dirty``; however many changes come, one rebalance answers them.

Paper: §3.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from random import Random

from consumers.algorithm1.assign import ThreadId
from consumers.algorithm1.editions import SOUND, Edition
from consumers.algorithm1.ownership import release, remove_stale
from consumers.algorithm1.reasons import JOINED, SESSION_LOST, difference
from consumers.algorithm1.rebalance import rebalance, still_right
from consumers.algorithm1.registries import View
from consumers.algorithm1.retry import ask_again
from consumers.algorithm1.steps import NewSession, Owned, Positions, Progress, Steps, Stop, Wait
from consumers.commit import Fenced, Offsets
from consumers.events import (
    CommitFailed,
    CommitFenced,
    Committed,
    ConsumerLeft,
    ConsumerRegistered,
    IdTakenOut,
    PartitionEvent,
    SessionLost,
)
from consumers.metrics import ConsumerCounters
from kafka2011.clock import Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Event, Journal
from kafka2011.types import BrokerAddress
from zk_registry import paths
from zk_registry.consumers import Subscription
from zk_registry.operations import (
    ConnectionLoss,
    Create,
    DeleteIfMine,
    Exists,
    NodeExists,
    RegistryError,
    SessionExpired,
    Set,
)

_FOREVER = 3600.0


class ConsumerIdInUse(Kafka2011Error):
    """Another consumer of the group holds the configured consumer id."""


class Member:
    """State of one consumer. Thread: worker; ``dirty``, ``closing`` and ``wanted_commits``: any, with a wake-up."""

    def __init__(
        self,
        group: str,
        subscription: Subscription,
        *,
        new_id: Callable[[], str],
        session_id: Callable[[], int],
        clock: Clock,
        journal: Journal,
        random: Random,
        edition: Edition = SOUND,
        autocommit_s: float | None = 10.0,
        patience_s: float = 10.0,
    ) -> None:
        self.group, self.subscription, self.edition = group, subscription, edition
        self.session_id, self.clock, self.random = session_id, clock, random
        self.counters = ConsumerCounters()
        self.offsets = Offsets(group)
        self.topics: list[str] = []
        self.claims: set[Owned] = set()
        """Owner nodes that may be ours: those created, and in `sound` those we set out to create."""
        self.reading: dict[Owned, tuple[ThreadId, BrokerAddress]] = {}
        """Partitions being delivered, by which stream and from where. Invariant in `sound`: all in ``claims``."""
        self.left_at: dict[Owned, int] = {}
        """Where the application was when delivery last stopped."""
        self.guarded: set[str] = set()
        """Owner nodes of ours, or in our way, with a watch on them."""
        self.blocked: dict[Owned, str] = {}
        """Partitions of our share that are left out, and whose node is in the way."""
        self.let_go: set[str] = set()
        """Owner nodes that we delete ourselves: when their watch fires, that is no news."""
        self.causes: list[str] = [JOINED]
        """Why the next rebalance, or the present one, is needed."""
        self._seen: View | None = None
        self.unreadable: set[str] = set()
        """Members whose subscription cannot be read, told once."""
        self.last_life: tuple[str, int] | None = None
        """The id and the session of the life before this one."""
        self.registered = False
        self.dirty = False
        self.closing = False
        self.wanted_commits: deque[Future[int]] = deque()
        self._journal = journal
        self._new_id = new_id
        self._autocommit_s = autocommit_s
        self._patience_s = patience_s
        self._session = 0
        self.consumer_id = new_id()

    def emit(self, event: Event) -> None:
        """Tell the journal."""
        self._journal.emit(event)

    def tell(self, kind: type[PartitionEvent], owned: Owned) -> None:
        """Tell the journal what happened to a partition."""
        self.emit(kind(group=self.group, consumer=self.consumer_id, topic=owned.topic, partition=owned.partition))

    def saw(self, view: View) -> None:
        """Note what is different from the last look."""
        if self._seen is not None:
            self.causes += difference(self._seen, view)
            # An edition may read one topic at a time: of the others the last look counts.
            view = replace(view, partitions=self._seen.partitions | view.partitions)
        self._seen = view

    def noticed(self, path: str) -> bool:
        """A watch fired: note that something changed, unless it was our own doing. Thread: any."""
        if path in self.let_go:
            self.let_go.discard(path)
            return False
        self.guarded.discard(path)
        self.dirty = True
        return True

    def life(self) -> Steps[None]:
        """Live until ``closing``."""
        return ask_again(self._life(), self.edition.asks)

    def _life(self) -> Steps[None]:
        while True:
            try:
                yield from remove_stale(self)
                yield from self._register()
                yield from self._serve()
                return
            except SessionExpired:
                # What was finished stays finished: if nobody read further meanwhile, this member goes on from there.
                self.left_at |= yield Stop()
                old, self.consumer_id = self.consumer_id, self._new_id()
                self.last_life = (old, self._session) if self.registered else None
                # Claims stay noted: one may have been made under the new session before we knew. Only ours are deleted.
                self.registered = False
                self.reading.clear()
                self.guarded.clear()
                self.blocked.clear()
                self.let_go.clear()
                self.counters.sessions_lost += 1
                self.causes, self._seen = [SESSION_LOST], None
                self.emit(SessionLost(group=self.group, consumer=old, reborn_as=self.consumer_id))
                if self.closing:
                    return
                yield NewSession()

    def stop_and_commit(self) -> Steps[None]:
        """End delivery and store how far the application got; without a commit, duplicates follow (§3.3)."""
        stopped = yield Stop()
        self.reading.clear()
        self.left_at |= stopped
        if self._autocommit_s is not None:
            yield from self._try_commit(stopped)

    def _register(self) -> Steps[None]:
        """Create the id node; wait out one left by an earlier life, refuse one that stays."""
        path = paths.consumer_id(self.group, self.consumer_id)
        deadline = self.clock.monotonic() + self._patience_s
        while True:
            try:
                holder = yield from self._enter(path)
            except ConnectionLoss:
                if self.closing:
                    return
                yield Wait(self.random.uniform(0.1, 0.5), "no answer to the registration")
                continue
            if holder is None:
                break
            if self.clock.monotonic() > deadline:
                raise ConsumerIdInUse(
                    f"consumer id {self.consumer_id!r} of group {self.group!r} is held by session {holder:#x}; "
                    "give each consumer its own id, or none"
                )
            yield Wait(0.2, "the id node of an earlier life to go")
        self.registered = self.dirty = True
        self._session = self.session_id()
        self.emit(ConsumerRegistered(group=self.group, consumer=self.consumer_id, session=self._session))

    def _enter(self, path: str) -> Steps[int | None]:
        """Create the id node; the session that holds it, if it is not ours."""
        try:
            yield Create(path, self.subscription.encode(), ephemeral=True, make_parents=True)
            return None
        except NodeExists:
            # Ours, if the answer to an earlier create was lost.
            node = yield Exists(path)
            holder = 0 if node is None else node.ephemeral_owner
            return None if holder == self.session_id() else holder

    def enter_again(self) -> Steps[None]:
        """Our id node is not as we wrote it. While our session lives, so do our claims: write it again and go on."""
        path = paths.consumer_id(self.group, self.consumer_id)
        if self.session_id() == self._session:
            self.emit(IdTakenOut(group=self.group, consumer=self.consumer_id))
            if (yield from self._enter(path)) is None:
                yield Set(path, self.subscription.encode())
                return
        raise SessionExpired(path, "this consumer's registration is gone; it registers anew")

    def _serve(self) -> Steps[None]:
        interval = self._autocommit_s
        due = self.clock.monotonic() + (interval or _FOREVER)
        while not self.closing:
            if self.dirty:
                self.dirty = False
                yield from self._answer_change()
            elif self.wanted_commits:
                yield from self._answer(self.wanted_commits.popleft())
            elif interval is not None and self.clock.monotonic() >= due:
                yield from self._try_commit((yield Progress()))
                due = self.clock.monotonic() + interval * self.random.uniform(0.9, 1.0)
            else:
                yield Wait(max(0.0, due - self.clock.monotonic()), "for a change, or the next commit")
        yield from self._leave()

    def _answer_change(self) -> Steps[None]:
        """Look before letting go: a change that leaves our share as it is stops nobody."""
        if self.edition.looks_first and self.reading:
            try:
                if (yield from still_right(self)):
                    self.causes.clear()
                    return
            except ConnectionLoss:
                # While the registry does not answer, what we own stays ours: delivery goes on.
                self.dirty = True
                yield Wait(self.random.uniform(0.1, 0.3), "the registry to answer")
                return
        yield from rebalance(self)

    def _leave(self) -> Steps[None]:
        try:
            while self.wanted_commits:
                yield from self._answer(self.wanted_commits.popleft())
            yield from self.stop_and_commit()
            yield from release(self, self.topics)
            yield DeleteIfMine(paths.consumer_id(self.group, self.consumer_id))
        except ConnectionLoss as error:
            # The end of the session removes our nodes; only the commit may be missing.
            self.emit(CommitFailed(group=self.group, consumer=self.consumer_id, reason=str(error)))
        self.emit(ConsumerLeft(group=self.group, consumer=self.consumer_id))

    def _answer(self, asked: Future[int]) -> Steps[None]:
        """A commit the application asked for: it gets the outcome, whatever it is."""
        try:
            asked.set_result((yield from self._commit((yield Progress()))))
        except SessionExpired as error:
            asked.set_exception(error)
            raise
        except (Fenced, RegistryError) as error:
            asked.set_exception(error)

    def _try_commit(self, positions: Positions) -> Steps[None]:
        """A commit nobody waits for: failure = carry on."""
        try:
            yield from self._commit(positions)
        except SessionExpired:
            raise
        except RegistryError as error:
            self.counters.commits_failed += 1
            self.emit(CommitFailed(group=self.group, consumer=self.consumer_id, reason=str(error)))

    def _commit(self, positions: Positions) -> Steps[int]:
        fence = paths.consumer_id(self.group, self.consumer_id) if self.edition.fenced else None
        try:
            written = yield from self.offsets.commit(positions, fence)
        except Fenced as error:
            self.counters.commits_fenced += 1
            self.emit(CommitFenced(group=self.group, consumer=self.consumer_id))
            raise SessionExpired(str(fence), str(error)) from error
        if written:
            self.counters.commits += 1
            self.counters.offsets_committed += len(written)
            offsets = {str(owned): offset for owned, offset in sorted(written.items())}
            self.emit(Committed(group=self.group, consumer=self.consumer_id, offsets=offsets))
        return len(written)
