"""The thread that copies offsets to ZooKeeper, and claims and gives up what is copied.

The reactor says what it wants and never waits; only the last value of each offset is kept until its turn has come.
While ZooKeeper does not answer everything stays wanted, and is tried again ever more slowly. When the session is over
the claims are gone with it, and whoever wanted them is told.

Paper: §3.2. Spec: modern-group-protocol §11.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.events import CoordinatorWaits, CopyingDelayed, OffsetsNotCopied
from consumers.group_protocol.offsets_copy import Copies, GroupPartition, OffsetsCopy
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.events import Journal
from zk_registry.lease import Lease, LeasedSession
from zk_registry.operations import SessionExpired
from zk_registry.states import Session, SessionState

FIRST_RETRY_S = 0.1
LONGEST_RETRY_S = 2.0
LOOK_AGAIN_S = 1.0
"""For claims that others hold, beside the watch."""
RENEW_BEFORE = 0.75
"""Of its length is left of the lease when it is renewed."""
TELL_AFTER_S = 10.0
"""How long a claim may take before an event says that its groups are not served."""


class Reports(Protocol):
    """Who wants to hear what became of its wishes; called in the reactor."""

    def taken(self, number: int, ticket: int, undisputed: bool, found: Copies, term: int) -> None:
        """``number`` is ours, with these copies, while ``term`` lasts; ``undisputed``: nobody else has had it since."""

    def copied(self, number: int, mark: int) -> None:
        """Everything put for ``number`` up to ``mark`` is copied."""

    def lost(self, numbers: frozenset[int]) -> None:
        """The session is over: these are no longer ours."""

    def tried(self) -> None:
        """Everything wanted so far was tried once."""


class Copier:
    """Thread: any; the work is done in its own."""

    def __init__(
        self,
        connect: Callable[[], Session],
        broker_id: int,
        call: Callable[..., object],
        *,
        interval_s: float,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``connect`` makes a session that is not started yet; reports go through ``call(function, *arguments)``."""
        self._connect, self._broker_id, self._call = connect, broker_id, call
        self._interval_s, self._journal, self._clock = interval_s, journal or Journal(), clock
        self._reports: Reports | None = None
        self._lock = threading.Lock()
        self._pending: dict[int, dict[GroupPartition, CommittedOffset | None]] = {}
        self._marks: dict[int, int] = {}
        """Up to where of the log ``_pending`` reaches."""
        self._to_take: dict[int, int] = {}
        self._to_settle: set[int] = set()
        self._to_release: set[int] = set()
        self._wake = threading.Event()
        self._give_up_at: float | None = None
        """When to stop trying; None until ``close``."""
        self._thread = threading.Thread(target=self._work, name="offsets-copier", daemon=True)
        # The thread's own
        self._session: Session | None = None
        self._leased: LeasedSession | None = None
        self._lease: Lease | None = None
        self._copy: OffsetsCopy | None = None
        self._incarnation = 0
        self._held: set[int] = set()
        self._watching = False
        self._copy_at = clock.monotonic()
        self._retry_s: float | None = None
        self._waiting_since: float | None = None
        self._told_waiting = False

    # What is wanted

    def start(self, reports: Reports) -> None:
        """Begin; ``reports`` hears what happens."""
        self._reports = reports
        self._thread.start()

    def take(self, number: int, ticket: int) -> None:
        """Claim ``number`` and read its copies; the report carries ``ticket``."""
        with self._lock:
            self._to_release.discard(number)
            self._to_take[number] = ticket
        self._wake.set()

    def release(self, number: int) -> None:
        """Give ``number`` up, after everything put so far is copied."""
        with self._lock:
            self._to_take.pop(number, None)
            self._to_release.add(number)
        self._wake.set()

    def settle(self, number: int) -> None:
        """Note that our own log is right about ``number``."""
        with self._lock:
            self._to_settle.add(number)
        self._wake.set()

    def put(self, number: int, changes: Mapping[GroupPartition, CommittedOffset | None], mark: int = 0) -> None:
        """Copy these within the interval; None deletes. What was put before and not copied yet is forgotten.

        ``mark`` is how far they go in the log; the report says which mark was reached.
        """
        with self._lock:
            was_empty = not self._pending
            if changes:
                self._pending.setdefault(number, {}).update(changes)
                self._marks[number] = max(mark, self._marks.get(number, 0))
        if was_empty:
            self._wake.set()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be claimed or copied just now; None if it can."""
        return None if self._session is None else self._session.trouble

    def holds(self, term: int) -> bool:
        """Whether what was taken in ``term`` is surely still ours."""
        return self._lease is not None and self._lease.holds(term)

    @property
    def n_pending(self) -> int:
        """Offsets whose copy is not up to date."""
        with self._lock:
            return sum(map(len, self._pending.values()))

    def close(self, patience_s: float) -> None:
        """Copy what is left, at most for this long, and end the session and its claims. Blocks."""
        self._give_up_at = self._clock.monotonic() + patience_s
        self._wake.set()
        self._thread.join(patience_s)
        if self._session is not None:
            self._session.close()
        if n_left := self.n_pending:
            self._journal.emit(OffsetsNotCopied(n_offsets=n_left))

    # The thread

    def _work(self) -> None:
        while not self._is_done():
            self._wake.clear()
            try:
                wait_s = self.round()
                self._retry_s = None
            except Exception as error:
                # Whatever it was, it is told and tried again: without this thread copies would silently grow old.
                wait_s = self._failed(error)
            if not self._is_done():
                self._wake.wait(wait_s)
        if self._session is not None:
            self._session.close()

    def _is_done(self) -> bool:
        if self._give_up_at is None:
            return False
        with self._lock:
            left = self._pending.keys() & self._held
        return not left or self._clock.monotonic() >= self._give_up_at

    def _failed(self, error: Exception) -> float:
        if self._retry_s is None:
            self._journal.emit(CopyingDelayed(n_offsets=self.n_pending, error=str(error) or repr(error)))
        self._tell_waiting(str(error))
        self._watching = False  # it may not have been left; two do no harm
        self._retry_s = min(LONGEST_RETRY_S, (self._retry_s or FIRST_RETRY_S / 2) * 2)
        return self._retry_s

    def round(self) -> float | None:
        """Do what is due; return the seconds until something is again, None if only a new wish can be."""
        copy = self._ready()
        self._renew()
        self._settle(copy)
        self._let_go(copy)
        waits = self._take(copy)
        closing = self._give_up_at is not None
        if closing or self._clock.monotonic() >= self._copy_at:
            self._copy_all(copy)
        with self._lock:
            idle = not self._pending.keys() & self._held
        due = [] if idle else [max(0.0, self._copy_at - self._clock.monotonic())]
        due += [LOOK_AGAIN_S] if waits else []
        due += [self._renew_in_s()] if self._held else []
        return min(due, default=None)

    def _renew(self) -> None:
        """Copies renew the lease; where there are none to write, ask for the sake of the answer."""
        if self._held and not self._renew_in_s():
            assert self._leased is not None
            self._leased.renew()

    def _renew_in_s(self) -> float:
        assert self._lease is not None
        return max(0.0, self._lease.left_s(self._incarnation) - RENEW_BEFORE * self._lease.length_s)

    def _ready(self) -> OffsetsCopy:
        """A session, and nothing believed that was claimed in another."""
        session = self._session
        if session is None:
            session = self._session = self._connect()
            try:
                session.start()
            except Exception:
                self._session = None
                raise
            session.on_state(lambda _state: self._wake.set())
            self._lease = Lease(session.timeout_s, clock=self._clock)
            self._leased = LeasedSession(session, self._lease, clock=self._clock)
            self._copy = OffsetsCopy(self._leased, self._broker_id, journal=self._journal)
        assert self._copy is not None and self._lease is not None
        if self._is_over(session):
            lost, self._held = frozenset(self._held), set()
            self._incarnation = session.incarnation
            self._lease.begin(self._incarnation)
            with self._lock:
                if self._give_up_at is None:
                    # What the log has and the copies have not is found when the claim is taken again.
                    for number in lost:
                        self._pending.pop(number, None)
                self._to_release -= lost
            if lost:
                self._call(self._told.lost, lost)
        return self._copy

    @property
    def _told(self) -> Reports:
        assert self._reports is not None, "not started"
        return self._reports

    def _is_over(self, session: Session) -> bool:
        return session.incarnation != self._incarnation or session.state is SessionState.LOST

    def _settle(self, copy: OffsetsCopy) -> None:
        with self._lock:
            wanted = self._to_settle & self._held
        for number in wanted:
            copy.settle(number)
        with self._lock:
            self._to_settle -= wanted

    def _let_go(self, copy: OffsetsCopy) -> None:
        with self._lock:
            wanted = frozenset(self._to_release)
        if not wanted:
            return
        for number in wanted & self._held:
            self._copy_one(copy, number)
        with self._lock:
            # Taken again meanwhile, or more to copy: later.
            wanted = frozenset(n for n in wanted & self._to_release if n not in self._pending or n not in self._held)
        sure, again = wanted & self._held, wanted - self._held
        self._held -= wanted
        copy.release(sure, again=False)
        copy.release(again, again=True)
        with self._lock:
            self._to_release -= wanted
            for number in wanted:
                self._pending.pop(number, None)
                self._to_settle.discard(number)

    def _take(self, copy: OffsetsCopy) -> bool:
        """Claim what is wanted; tell whether something could not be had yet."""
        with self._lock:
            wanted = dict(self._to_take)
        if not wanted:
            self._waiting_since, self._told_waiting = None, False
            return False
        missing = wanted.keys() - self._held
        ours, holders = copy.claim(missing, self._watch()) if missing else (set[int](), dict[int, str]())
        self._held |= ours
        for number in sorted(wanted.keys() & self._held):
            undisputed = copy.succeed(number)
            found = copy.read(number)
            with self._lock:
                if self._to_take.get(number) == wanted[number]:
                    del self._to_take[number]
            self._call(self._told.taken, number, wanted[number], undisputed, found, self._incarnation)
        self._call(self._told.tried)
        self._tell_waiting(", ".join(sorted(set(holders.values()))), waits=bool(holders))
        return bool(holders)

    def _watch(self) -> Callable[[str], None] | None:
        """One watch at a time: its call says that claims came or went, or that it was lost with the connection."""
        if self._watching:
            return None
        self._watching = True

        def changed(_path: str) -> None:
            self._watching = False
            self._wake.set()

        return changed

    def _copy_all(self, copy: OffsetsCopy) -> None:
        with self._lock:
            for number in self._pending.keys() - self._held - self._to_take.keys():
                del self._pending[number]  # not ours: whoever claims it reads the log
            due = list(self._pending.keys() & self._held)
        for number in due:
            self._copy_one(copy, number)
        if due:
            self._copy_at = self._clock.monotonic() + self._interval_s

    def _copy_one(self, copy: OffsetsCopy, number: int) -> None:
        with self._lock:
            changes, mark = dict(self._pending.get(number, {})), self._marks.get(number, 0)
        assert self._session is not None
        if self._is_over(self._session):
            raise SessionExpired("/", "what was claimed in it may be another's now")
        copy.write(number, changes)
        with self._lock:
            now = self._pending.get(number, {})
            left = {key: value for key, value in now.items() if key not in changes or changes[key] != value}
            self._pending.pop(number, None)
            if left:
                self._pending[number] = left
        if changes:
            self._call(self._told.copied, number, mark)

    def _tell_waiting(self, reason: str, *, waits: bool = True) -> None:
        """Say once when claims take long: their groups are answered 14 until then."""
        with self._lock:
            waiting = tuple(sorted(self._to_take))
        now = self._clock.monotonic()
        if not waits or not waiting:
            self._waiting_since, self._told_waiting = None, False
        elif self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since >= TELL_AFTER_S and not self._told_waiting:
            self._told_waiting = True
            self._journal.emit(CoordinatorWaits(partitions=waiting, reason=reason))
