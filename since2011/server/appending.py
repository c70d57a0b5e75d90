"""Append as the leader of a partition, with acks=all, what brokers themselves have to say: markers, transactions."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from since2011.log.validation import Prepared
from since2011.replication.leading import Leading
from since2011.replication.led import Led
from since2011.server.modern_topics import ModernTopics

TIMEOUT_S = 30.0
"""How long the replicas in sync may take to have it (``request.timeout.ms`` of a broker)."""


class Appending:
    """Thread: reactor."""

    def __init__(self, topics: ModernTopics, leading: Leading) -> None:
        self._topics, self._leading = topics, leading

    def append(self, led: Led, prepared: Prepared) -> Deferred[None] | None:
        """Append; what to wait for before it is as safe as the topic asks for, None if it is.

        Raises Kafka2011Error: nothing is kept then. The wait fails with one: it may be kept.
        """
        self._leading.check(led, everywhere=True)
        log = self._topics.log_for_writing(led)
        appended = log.append(prepared, led.leader_epoch)
        return self._leading.stored(led, appended.last_offset + 1, everywhere=True, timeout_s=TIMEOUT_S)
