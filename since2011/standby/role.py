"""What a member may do just now: lead, while its lease holds, or follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import NotServing
from zk_registry.lease import Lease

if TYPE_CHECKING:
    from since2011.standby.lead import Lead
    from since2011.standby.member_log import MemberLog


class Role:
    """Asked by the logs of a member at every read and append. Thread: any may ask."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.term = 0
        self.closing = False
        """Still leading, for the sake of the followers; clients are not served any more."""
        self._lead: Lead | None = None

    @property
    def leads(self) -> bool:
        """Whether this member was elected, and has not stopped since."""
        return self._lead is not None

    @property
    def epoch(self) -> int:
        """The epoch in which this member leads; -1 if it does not."""
        return -1 if self._lead is None else self._lead.epoch

    def take_over(self, lead: Lead, term: int) -> None:
        """Lead from now on, by right of session ``term``."""
        self.term, self._lead = term, lead

    def step_down(self) -> None:
        """Lead no more."""
        self._lead = None

    def check(self, log: MemberLog | None = None) -> None:
        """Raise NotServing unless this member leads; of a ``log``, unless its watermark has come as far as the last
        leader's can have."""
        lead = self._lead
        self.check_leads()
        if self.closing:
            raise NotServing("this member of the broker is stopping; look for the broker in ZooKeeper")
        if log is not None and lead is not None and not lead.has_come_far_enough(log):
            raise NotServing(f"{log.where}: the other members in sync have not been heard of yet; try again")

    def check_leads(self) -> None:
        """Raise NotServing unless this member leads, for followers at least."""
        if self._lead is None or not self.lease.holds(self.term):
            raise NotServing("this member of the broker does not lead now; look for the broker in ZooKeeper")

    def lead(self, log: MemberLog) -> None:
        """Note a log that is led for the first time in this epoch."""
        assert self._lead is not None
        self._lead.begin([log])

    def appended(self, log: MemberLog) -> None:
        """Tell the followers."""
        if self._lead is not None:
            self._lead.appended(log)
