"""Force the producers' notes to disk, one sync per file at a time, and tell who waits for it.

As the flush of a log: what is noted during a sync is covered by the next one, and a sync that fails is final, because
the kernel may have dropped what it could not write and would report success the next time. See docs/modern-port.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from kafka2011.broker.waiters import Waiters
from kafka2011.errors import FlushFailed
from kafka2011.log.events import DiskFailed
from kafka2011.log.log import Log
from since2011.era2011.producer_journal import PartitionJournal

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker


class NoteSync:
    """The syncs of one partition's notes. Thread: reactor."""

    def __init__(self, broker: Broker, log: Log, journal: PartitionJournal) -> None:
        self._broker, self._log, self._journal = broker, log, journal
        self._waiters = Waiters()
        self._synced = 0
        self.running = False

    def when_synced(self) -> Deferred[None]:
        """Fire when every note made so far is on disk; fail with FlushFailed if that can never be. Cancellable."""
        noted = self._journal.n_noted
        if self._journal.failed:
            return fail(FlushFailed(self._journal.failed))
        if noted <= self._synced:
            return succeed(None)
        waiter = self._waiters.wait_for(noted)
        if not self.running:
            self._begin()
        return waiter

    def _begin(self) -> None:
        self.running = True
        noted = self._journal.n_noted
        self._broker.in_disk_thread(self._journal.sync).addCallbacks(self._done, self._failed, callbackArgs=(noted,))

    def _done(self, _: None, noted: int) -> None:
        self.running, self._synced = False, noted
        self._waiters.reached(noted)
        if self._waiters and not self.running:
            self._begin()

    def _failed(self, failure: Failure) -> None:
        self.running = False
        why = failure.getErrorMessage()
        step = "sync of the producers' notes"
        self._broker.journal.emit(
            DiskFailed(topic=self._log.topic, partition=self._log.partition, step=step, reason=why)
        )
        self._waiters.fail(why)
