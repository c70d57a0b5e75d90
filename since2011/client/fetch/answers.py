"""What answers mean for positions: the rules of Kafka's own consumers, error by error.

| error | what follows |
|---|---|
| 1 out of range | asked once more without the epoch; then auto.offset.reset decides, or the application |
| 3, 5, 6, 9, 56, 74, 75, 78, 100, 103 | somebody else leads, or will: metadata, back-off, again |
| 70, 71, 106 for the whole fetch | another session |
| 29 | the application is told |
| everything else | back-off, again: a broker that is ill must not end a reader |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka2011.events import Event
from kafka2011.types import TopicPartition
from since2011.client.backoff import Backoff
from since2011.client.fetch.chunk import FetchedChunk
from since2011.client.fetch.errors import LogTruncated, NotAllowed, PositionOutOfRange
from since2011.client.fetch.events import PositionCutOff, PositionReset
from since2011.client.fetch.position import FetchPosition, Stage
from since2011.client.fetch.requests import Ask, Asked
from since2011.client.fetch.session import FetchSession
from since2011.client.fetch.settings import FetchSettings
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

Positions = Mapping[TopicPartition, FetchPosition]


class Answers:
    """Applies answers. Thread: one."""

    def __init__(self, settings: FetchSettings, backoff: Backoff) -> None:
        self._settings, self._backoff = settings, backoff
        self._doubt = False
        self.events: list[Event] = []

    def take_doubt(self) -> bool:
        """Whether the metadata is in doubt; asked once."""
        doubt, self._doubt = self._doubt, False
        return doubt

    def wait(self, at: FetchPosition, now: float) -> None:
        """Try again, not at once."""
        at.failures += 1
        at.not_before = now + self._backoff.after(at.failures)

    # -- Fetch ----------------------------------------------------------------------------------------------------

    def fetched(
        self, session: FetchSession, ask: Ask, answer: Struct, positions: Positions, now: float
    ) -> list[FetchPosition]:
        """A Fetch was answered; the positions that something came for."""
        if answer.error:
            session.broken()
            for one in ask.about:
                # A session that is not known any more is begun anew at once: that is no failure.
                if answer.error not in (70, 71, 106) and (at := positions.get(one.partition)) is not None:
                    self.wait(at, now)
            return []
        session.answered(answer.session_id)
        some = []
        for one, row in _rows(ask, answer):
            at = positions.get(one.partition)
            if at is None or at.turn != one.turn or at.offset != one.row.offset or at.stage is not Stage.READY:
                continue  # it was moved meanwhile
            if row.error:
                self._not_fetched(at, one, row.error, now)
                continue
            at.failures, at.not_before, at.validated_for = 0, 0.0, one.row.leader_epoch
            at.high_watermark, at.last_stable_offset = row.high_watermark, row.last_stable
            at.log_start_offset = row.log_start
            if row.diverging_epoch is not None:
                self._cut_off(at, row.diverging_epoch.epoch, row.diverging_epoch.end_offset)
            elif row.records:
                before = at.offset
                at.fetched(self._chunk(at, row))
                if at.offset > before:
                    some.append(at)
        return some

    def _chunk(self, at: FetchPosition, row: Struct) -> FetchedChunk:
        settings = self._settings
        aborted = [(one.first_offset, one.producer_id) for one in row.aborted or ()]
        return FetchedChunk(
            at.partition,
            row.records,
            at.offset,
            aborted,
            committed=settings.isolation == 1,
            check_crcs=settings.check_crcs,
        )

    def _not_fetched(self, at: FetchPosition, one: Asked, error: int, now: float) -> None:
        if error == ErrorCode.OFFSET_OUT_OF_RANGE and one.row.last_epoch >= 0:
            at.says_epoch = False
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(at, now)
        else:
            self._refused(at, error, now)

    def _out_of_range(self, at: FetchPosition, now: float) -> None:
        reset_to = self._settings.reset_to
        if reset_to is None:
            sentence = f"offset {at.offset} is outside the log and auto.offset.reset is none; seek"
            at.get_stuck(PositionOutOfRange(at.partition, at.offset, sentence))
        elif at.chunks:
            self.wait(at, now)  # what waits is given out first; the next fetch is told the same
        else:
            asked = at.offset
            at.look_up(reset_to)
            at.asked_before = asked

    # -- ListOffsets ----------------------------------------------------------------------------------------------

    def found(self, ask: Ask, answer: Struct, positions: Positions, now: float) -> None:
        """Offsets of times were answered."""
        for one, row in _rows(ask, answer):
            at = positions.get(one.partition)
            if at is None or at.turn != one.turn or at.stage is not Stage.AT_TIME:
                continue
            if row.error or row.offset < 0:
                self._refused(at, row.error, now)
                continue
            topic, number, asked = at.partition.topic, at.partition.partition, at.asked_before
            at.go_to(row.offset)
            at.last_epoch, at.validated_for = row.leader_epoch, one.row.leader_epoch
            if asked >= 0:
                self.events.append(PositionReset(topic=topic, partition=number, asked=asked, moved_to=row.offset))

    # -- OffsetForLeaderEpoch -------------------------------------------------------------------------------------

    def compared(self, ask: Ask, answer: Struct, positions: Positions, now: float) -> None:
        """The ends of epochs were answered."""
        for one, row in _rows(ask, answer):
            at = positions.get(one.partition)
            if at is None or at.turn != one.turn or at.stage is not Stage.TO_VALIDATE:
                continue
            if row.error:
                self._refused(at, row.error, now)
            elif row.epoch < 0 or row.end_offset < 0:
                # The leader knows nothing of that epoch: its log begins later.
                self._cut_off(at, -1, None)
            elif row.end_offset < one.row.offset:
                self._cut_off(at, row.epoch, row.end_offset)
            else:
                at.failures, at.not_before = 0, 0.0
                at.validated(one.row.leader_epoch)

    def _cut_off(self, at: FetchPosition, epoch: int, end: int | None) -> None:
        """Our history and the leader's part at ``end``, before what the next fetch would ask for."""
        position = at.position
        given_out = position.offset if position is not None else at.offset
        if end is not None and position is not None and given_out <= end:
            # Only what the application has not seen yet is not true any more.
            at.go_to(given_out, position.leader_epoch)
            return
        reset_to = self._settings.reset_to
        if reset_to is None:
            at.chunks.clear()
            at.get_stuck(LogTruncated(at.partition, given_out, end))
        elif end is None:
            at.look_up(reset_to)
            at.asked_before = given_out
        else:
            at.go_to(end, epoch)
            partition = at.partition
            self.events.append(
                PositionCutOff(topic=partition.topic, partition=partition.partition, asked=given_out, moved_to=end)
            )

    # -- errors ---------------------------------------------------------------------------------------------------

    def _refused(self, at: FetchPosition, error: int, now: float) -> None:
        if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            at.get_stuck(NotAllowed(at.partition, "the broker does not let this client read the topic"))
            return
        self._doubt = True
        self.wait(at, now)


def _rows(ask: Ask, answer: Struct) -> Iterator[tuple[Asked, Struct]]:
    """What was asked beside what was answered; a broker may leave out what has not changed."""
    asked = {one.partition: one for one in ask.about}
    for topic in answer.topics:
        for row in topic.partitions:
            one = asked.get(TopicPartition(topic.name, row.index))
            if one is not None:
                yield one, row
