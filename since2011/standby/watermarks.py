"""Who waits for a watermark: acknowledged produces, long polls. In the place of the flushed mark (``Visibility``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from twisted.internet.defer import Deferred, succeed

from kafka2011.broker.visibility import Visibility
from kafka2011.broker.waiters import Waiters
from kafka2011.errors import NotServing, TooFewInSync
from kafka2011.log.log import Log

if TYPE_CHECKING:
    from since2011.standby.lead import Lead


class Watermarks(Visibility):
    """What every member in sync holds is visible, and safe. Thread: reactor."""

    has_copies: ClassVar[bool] = True

    def __init__(self) -> None:
        self.lead: Lead | None = None
        self._waiting: dict[Log, Waiters] = {}
        self._callbacks: list[Callable[[Log], None]] = []

    def when_safe(self, log: Log, offset: int) -> Deferred[None]:
        """As ``Visibility``."""
        if log.visible_offset >= offset:
            return succeed(None)
        return self._waiting.setdefault(log, Waiters()).wait_for(offset)

    def on_moved(self, callback: Callable[[Log], None]) -> None:
        """As ``Visibility``."""
        self._callbacks.append(callback)

    def check_copies(self) -> None:
        """Raise TooFewInSync if fewer are in sync than ``standby.min.insync``."""
        if self.lead is None:
            raise NotServing("this member of the broker does not lead now")
        if not self.lead.has_enough:
            raise TooFewInSync(
                f"{self.lead.n_in_sync} members are in sync, standby.min.insync is {self.lead.min_insync}; nothing was "
                "appended, try again when more have come"
            )

    def moved(self, log: Log) -> None:
        """Readers may see more of ``log``."""
        if log in self._waiting:
            self._waiting[log].reached(log.visible_offset)
        for callback in self._callbacks:
            callback(log)

    def give_up(self) -> None:
        """This member leads no more: whether what is waited for is kept, the next leader knows."""
        waiting, self._waiting = self._waiting, {}
        for waiters in waiting.values():
            waiters.fail("this member of the broker has stopped leading; the next leader may hold it, or not")
