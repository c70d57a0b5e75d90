"""The half of a consumer that knows of positions and offsets and nothing of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from consumers.group_protocol.member.settings import ConsumerSettings
from consumers.group_protocol.member.subscriptions import IllegalUse
from kafka2011.errors import RequestTimedOut
from kafka2011.types import TopicPartition
from since2011.client.fetch.position import FetchPosition
from since2011.client.fetch.reader import FoundOffset, Reader
from since2011.client.fetch.settings import EARLIEST, LATEST
from since2011.client.group_metadata import OffsetAndMetadata

_SLICE_S = 0.1


class Positions:
    """Seek, pause, ask where things are. Thread: the application's."""

    def __init__(self, reader: Reader, settings: ConsumerSettings) -> None:
        self._reader, self._settings = reader, settings

    # -- of partitions that are read ------------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The next offset of each partition that is read, where it is known."""
        known = ((partition, at.position) for partition, at in self._reader.fetcher.positions.items())
        return {partition: at for partition, at in known if at is not None}

    def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record ``poll`` gives out; waits while it is being looked up."""
        at = self._read(partition)
        deadline = self._reader.clock.monotonic() + self._patience(timeout_s)
        while (found := at.position) is None:
            if at.trouble is not None:
                raise at.trouble
            if self._reader.clock.monotonic() >= deadline:
                raise RequestTimedOut(f"the position of {partition} was not found in time; is there a leader?")
            self._reader.step(_SLICE_S)
        return found.offset

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on at ``offset``. With a leader epoch, it is first compared with the leader's history."""
        self._read(partition)
        start = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if start.offset < 0:
            raise IllegalUse(f"{start.offset} is no offset to seek to; see seek_to_beginning and seek_to_end")
        self._reader.fetcher.seek(partition, start)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record there is; without arguments in all that is read."""
        self._seek_to_time(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on with what comes next; without arguments in all that is read."""
        self._seek_to_time(partitions, LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver nothing of these until ``resume``; they stay ours."""
        for partition in partitions:
            self._read(partition).paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these."""
        for partition in partitions:
            self._read(partition).paused = False

    def paused(self) -> set[TopicPartition]:
        """What ``pause`` holds back."""
        return {partition for partition, at in self._reader.fetcher.positions.items() if at.paused}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets are still to come, as of the last fetch; None before the first.

        With ``read_committed`` counted to the last stable offset.
        """
        at = self._read(partition)
        end = at.last_stable_offset if self._settings.isolation else at.high_watermark
        position = at.position
        return None if end < 0 or position is None else max(end - position.offset, 0)

    # -- of any partition -----------------------------------------------------------------------------------------

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_s: float | None = None
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first record stamped at this time or later (milliseconds), for each partition; None: there is none."""
        if negative := [partition for partition, time in times.items() if time < 0]:
            raise IllegalUse(f"a time before 1970 for {negative[0]}; for the ends see beginning_offsets, end_offsets")
        return self._reader.offsets_at(times, self._patience(timeout_s))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset that is still there."""
        return self._ends(partitions, EARLIEST, timeout_s)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the next record to come; with ``read_committed`` of the first that is not decided yet."""
        return self._ends(partitions, LATEST, timeout_s)

    def partitions_for(self, topic: str, timeout_s: float | None = None) -> list[TopicPartition]:
        """The partitions of a topic."""
        return self._reader.partitions_for(topic, self._patience(timeout_s))

    def _ends(
        self, partitions: Iterable[TopicPartition], time: int, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        found = self._reader.offsets_at(dict.fromkeys(partitions, time), self._patience(timeout_s))
        return {partition: at.offset for partition, at in found.items() if at is not None}

    def _seek_to_time(self, partitions: Iterable[TopicPartition], time: int) -> None:
        for partition in list(partitions) or list(self._reader.fetcher.positions):
            self._read(partition)
            self._reader.fetcher.seek_to_time(partition, time)

    def _read(self, partition: TopicPartition) -> FetchPosition:
        at = self._reader.fetcher.positions.get(partition)
        if at is None:
            raise IllegalUse(f"{partition} is not assigned to this consumer")
        return at

    def _patience(self, timeout_s: float | None) -> float:
        return self._settings.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s
