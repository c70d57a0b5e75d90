"""What to ask of whom next, and what an answer means for the positions. No I/O: time and answers in, requests out.

One request of each kind is under way per broker. A partition is asked for again, ahead of the application, when less
than half of what one fetch may bring of it is left; a broker is asked only when all its partitions are that far, for a
request that waits for the quiet ones would leave the others dry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kafka2011.errors import Kafka2011Error
from kafka2011.events import Event
from kafka2011.types import TopicPartition
from since2011.client.backoff import Backoff
from since2011.client.fetch.answers import Answers
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.client.fetch.errors import NoOffsetForPartition
from since2011.client.fetch.position import FetchPosition, Stage
from since2011.client.fetch.requests import Ask, Asked, epochs_body, fetch_body, list_offsets_body
from since2011.client.fetch.session import FetchSession, Row
from since2011.client.fetch.settings import FetchSettings
from since2011.client.group_metadata import OffsetAndMetadata
from since2011.wire.codec import ApiKey, Struct

CanSend = Callable[[int, ApiKey], bool]
"""Whether a request of this kind may be sent to this broker now."""


class Leader(NamedTuple):
    """Who leads a partition, since when."""

    broker_id: int
    """-1: nobody."""
    epoch: int


class Fetcher:
    """The partitions that are read. Thread: one."""

    def __init__(self, settings: FetchSettings, backoff: Backoff) -> None:
        self.settings = settings
        self.positions: dict[TopicPartition, FetchPosition] = {}
        self.wants_metadata = False
        """A leader is not where it should be; whoever asks sets it back."""
        self._leaders: Mapping[TopicPartition, Leader] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._busy: set[tuple[int, ApiKey]] = set()
        self._arrived: dict[TopicPartition, None] = {}
        """Partitions that have chunks, in the order in which the first came."""
        self._answers = Answers(settings, backoff)

    # -- what is read ---------------------------------------------------------------------------------------------

    def assign(self, partition: TopicPartition, start: OffsetAndMetadata | None) -> None:
        """Read this partition too; ``start`` None: where auto.offset.reset says."""
        at = self.positions[partition] = FetchPosition(partition)
        if start is not None:
            at.go_to(start.offset, start.leader_epoch)
        elif self.settings.reset_to is None:
            sentence = "nothing is committed and auto.offset.reset is none; seek"
            at.get_stuck(NoOffsetForPartition(partition, sentence))
        else:
            at.look_up(self.settings.reset_to)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer; what waits of them is dropped."""
        for partition in partitions:
            self.positions.pop(partition, None)
            self._arrived.pop(partition, None)

    def seek(self, partition: TopicPartition, start: OffsetAndMetadata) -> None:
        """Go on elsewhere."""
        self.positions[partition].go_to(start.offset, start.leader_epoch)
        self._arrived.pop(partition, None)

    def seek_to_time(self, partition: TopicPartition, time: int) -> None:
        """Go on where the log was at ``time``; EARLIEST and LATEST are times too."""
        self.positions[partition].look_up(time)
        self._arrived.pop(partition, None)

    def set_leaders(self, leaders: Mapping[TopicPartition, Leader]) -> None:
        """What the newest metadata says."""
        self._leaders = leaders
        for partition, at in self.positions.items():
            leader = leaders.get(partition)
            if leader is None or leader.broker_id < 0:
                continue
            if at.stage is Stage.READY and at.last_epoch >= 0 and leader.epoch > at.validated_for >= 0:
                at.stage = Stage.TO_VALIDATE

    # -- what is due ----------------------------------------------------------------------------------------------

    def due(self, now: float, can_send: CanSend) -> list[Ask]:
        """The requests to send now; each must be followed by ``answered`` or ``failed``."""
        led: dict[int, list[FetchPosition]] = {}
        for partition, at in self.positions.items():
            leader = self._leaders.get(partition)
            if leader is None or leader.broker_id < 0:
                self.wants_metadata = True
            elif at.stage is not Stage.STUCK:
                led.setdefault(leader.broker_id, []).append(at)
        asks = []
        for broker, positions in led.items():
            ready = [at for at in positions if at.not_before <= now]
            asks += self._look_ups(broker, ready, Stage.AT_TIME, ApiKey.LIST_OFFSETS, can_send)
            asks += self._look_ups(broker, ready, Stage.TO_VALIDATE, ApiKey.OFFSET_FOR_LEADER_EPOCH, can_send)
            asks += self._fetch(broker, ready, can_send)
        return asks

    def next_at(self, now: float) -> float | None:
        """When something that waits for time alone becomes due."""
        return min((at.not_before for at in self.positions.values() if at.not_before > now), default=None)

    def _look_ups(
        self, broker: int, positions: list[FetchPosition], stage: Stage, key: ApiKey, can_send: CanSend
    ) -> list[Ask]:
        wanted = [at for at in positions if at.stage is stage and not at.asked]
        if not wanted or (broker, key) in self._busy or not can_send(broker, key):
            return []
        about = tuple(self._asked(at) for at in wanted)
        if key is ApiKey.LIST_OFFSETS:
            times = {one.partition: (one.time, one.row.leader_epoch) for one in about}
            return [self._ask(broker, key, list_offsets_body(times, self.settings.isolation), about)]
        return [self._ask(broker, key, epochs_body(about), about)]

    def _fetch(self, broker: int, positions: list[FetchPosition], can_send: CanSend) -> list[Ask]:
        if (broker, ApiKey.FETCH) in self._busy:
            return []
        half = self.settings.max_partition_fetch_bytes // 2
        wanted = [at for at in positions if at.stage is Stage.READY and not at.paused]
        if not wanted or any(at.buffered > half for at in wanted) or not can_send(broker, ApiKey.FETCH):
            return []
        about = tuple(self._asked(at) for at in wanted)
        session = self._sessions.setdefault(broker, FetchSession())
        body = fetch_body(self.settings, session.request({one.partition: one.row for one in about}))
        return [self._ask(broker, ApiKey.FETCH, body, about)]

    def _asked(self, at: FetchPosition) -> Asked:
        epoch = at.last_epoch if at.says_epoch or at.stage is Stage.TO_VALIDATE else -1
        row = Row(at.offset, epoch, self._leaders[at.partition].epoch, self.settings.max_partition_fetch_bytes)
        return Asked(at.partition, at.turn, row, at.time)

    def _ask(self, broker: int, key: ApiKey, body: Struct, about: tuple[Asked, ...]) -> Ask:
        self._busy.add((broker, key))
        for one in about:
            self.positions[one.partition].asked = key is not ApiKey.FETCH
        return Ask(broker, key, body, about)

    # -- what came ------------------------------------------------------------------------------------------------

    def answered(self, ask: Ask, answer: Struct, now: float) -> None:
        """The broker's answer to a request."""
        self._over(ask)
        answers = self._answers
        if ask.key is ApiKey.FETCH:
            for at in answers.fetched(self._sessions[ask.broker], ask, answer, self.positions, now):
                self._arrived.setdefault(at.partition)
                # Asked for last in the next request, so that whoever had nothing this time is not left out again.
                self.positions[at.partition] = self.positions.pop(at.partition)
        elif ask.key is ApiKey.LIST_OFFSETS:
            answers.found(ask, answer, self.positions, now)
        else:
            answers.compared(ask, answer, self.positions, now)
        for partition in [one for one in self._arrived if not self.positions[one].chunks]:
            del self._arrived[partition]
        self.wants_metadata |= answers.take_doubt()

    def failed(self, ask: Ask, now: float) -> None:
        """No answer will come."""
        self._over(ask)
        if ask.key is ApiKey.FETCH:
            self._sessions[ask.broker].broken()
        for one in ask.about:
            if (at := self.positions.get(one.partition)) is not None:
                self._answers.wait(at, now)
        self.wants_metadata = True

    def _over(self, ask: Ask) -> None:
        self._busy.discard((ask.broker, ask.key))
        for one in ask.about:
            if (at := self.positions.get(one.partition)) is not None and at.turn == one.turn:
                at.asked = False

    def take_events(self) -> list[Event]:
        """What the journal should hear; the list is the caller's from now on."""
        told, self._answers.events = self._answers.events, []
        return told

    # -- what is given out ----------------------------------------------------------------------------------------

    def take(self, at_most: int) -> list[ConsumerRecord]:
        """Records in the order they came; raises a partition's trouble if there is nothing to give out before it."""
        found: list[ConsumerRecord] = []
        for partition in list(self._arrived):
            at = self.positions[partition]
            if at.paused:
                continue
            while at.chunks and len(found) < at_most:
                try:
                    some = at.chunks[0].take(at_most - len(found))
                except Kafka2011Error:
                    if found:
                        return found
                    raise
                if not some:
                    at.chunks.popleft()
                found += some
            if at.chunks:
                break
            del self._arrived[partition]
        if not found:
            self._raise_trouble()
        return found

    def _raise_trouble(self) -> None:
        for at in self.positions.values():
            if at.trouble is not None and not at.chunks and not at.paused:
                raise at.trouble
