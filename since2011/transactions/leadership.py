"""Which transactional ids this broker speaks for: those whose partition of ``__transaction_state`` it leads.

    elected    the partition's log is read, in a thread; until then its producers are told 14
    resigned   its ids are forgotten; who waits is told 16
    missing    the topic is made when somebody first asks for a coordinator

See docs/transactions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from kafka2011.events import Journal
from since2011.server.modern_topics import ModernTopics
from since2011.topics.image import PartitionImage
from since2011.topics.internal import TRANSACTIONS_TOPIC
from since2011.transactions.journal_events import TransactionRecordUnreadable, TransactionsNotRead, TransactionsRead
from since2011.transactions.state_log import StateLog
from since2011.transactions.transaction import PREPARED, Transaction

Elected = Callable[[int, int, list[Transaction]], None]
"""Told of a partition, its leader epoch, and what its log says."""
Resigned = Callable[[int], None]


class TransactionsLeadership:
    """Listens to who leads ``__transaction_state``. Thread: reactor."""

    def __init__(
        self, topics: ModernTopics, log: StateLog, journal: Journal, elected: Elected, resigned: Resigned
    ) -> None:
        self._topics, self._log, self._journal = topics, log, journal
        self._elected, self._resigned = elected, resigned
        self._ours: dict[int, int] = {}
        """The leader epoch of each partition that is ours, read or not."""
        self._taking: set[Deferred[None]] = set()
        self.loading: set[int] = set()
        self.unreadable: dict[int, str] = {}
        self._stopped = False

    def partition(self, number: int) -> PartitionImage | None:
        """What the metadata says of one partition; None if there is no topic yet."""
        return self._topics.image.partition(TRANSACTIONS_TOPIC, number)

    def is_ours(self, number: int) -> bool:
        """Whether this broker leads the partition."""
        return number in self._ours

    def ready(self) -> Deferred[Any]:
        """Fire when everything that is ours by now is read."""
        return DeferredList(list(self._taking))

    def stop(self) -> None:
        """Take nothing over any more."""
        self._stopped = True

    def elected(self, index: int, epoch: int) -> None:
        """The ids of the partition are this broker's. Elected anew it begins anew: the epoch is in every marker."""
        if self._stopped or self._ours.get(index) == epoch:
            return
        self.resigned(index)
        self._ours[index] = epoch
        self.loading.add(index)
        taking = Deferred.fromCoroutine(self._take(index, epoch))
        self._taking.add(taking)
        taking.addBoth(lambda _: self._taking.discard(taking))

    def resigned(self, index: int) -> None:
        """They are another's."""
        if self._ours.pop(index, None) is None:
            return
        self._log.leave(index)
        self._resigned(index)
        self.loading.discard(index)
        self.unreadable.pop(index, None)

    async def _take(self, number: int, epoch: int) -> None:
        def is_wanted() -> bool:
            return self._ours.get(number) == epoch and not self._stopped

        try:
            found = await self._log.read(number, is_wanted, self._record_unreadable)
        except Exception as error:  # whatever it is, the ids of other partitions are spoken for
            if is_wanted():
                self.loading.discard(number)
                self.unreadable[number] = str(error)
                self._journal.emit(TransactionsNotRead(partition=number, error=str(error)))
            return
        if found is None:
            return
        self.loading.discard(number)
        if found:
            unfinished = sum(each.state in PREPARED for each in found.values())
            self._journal.emit(TransactionsRead(partition=number, n_ids=len(found), n_unfinished=unfinished))
        self._elected(number, epoch, list(found.values()))

    def _record_unreadable(self, key: bytes | None, error: str) -> None:
        shown = "" if key is None else key[:60].decode("utf-8", "backslashreplace")
        self._journal.emit(TransactionRecordUnreadable(key=shown, error=error))
