"""A partition at a follower: first find where its history parts from the leader's, then fetch. No I/O.

    begin            -> Cut(high watermark) and fetching, if the log knows of no epoch
                     -> AskEpoch otherwise
    epoch_answered   -> Cut, and fetching or asking again
    fetched          -> checks that an answer is still wanted

A new epoch begins all this again, also with the same leader (KAFKA-7164). An answer that was asked for in an older
epoch is dropped (KAFKA-7786).
"""

from __future__ import annotations

from typing import NamedTuple

from since2011.log.epoch_history import EpochHistory
from since2011.replication.partition_state import PartitionState
from since2011.replication.truncation import Cut, cut, question


class AskEpoch(NamedTuple):
    """Ask the leader where ``epoch`` ended, as one who follows it in ``current_epoch``."""

    current_epoch: int
    epoch: int


class FetchFrom(NamedTuple):
    """Fetch what follows ``offset``."""

    current_epoch: int
    offset: int


class Follower:
    """One partition followed here, in one epoch. Thread: one."""

    def __init__(self, me: int, state: PartitionState, history: EpochHistory) -> None:
        self.me, self.state, self._history = me, state, history
        self._asking = True

    @property
    def epoch(self) -> int:
        """The leader's."""
        return self.state.leader_epoch

    @property
    def is_fetching(self) -> bool:
        """Whether the histories are known to be one."""
        return not self._asking

    def begin(self, log_end: int, high_watermark: int) -> Cut | None:
        """Where to cut at once: a log that knows of no epoch can only trust its high watermark."""
        if question(self._history) is not None:
            return None
        self._asking = False
        return Cut(min(high_watermark, log_end), done=True)

    def next_request(self, log_end: int) -> AskEpoch | FetchFrom:
        """What to send next."""
        epoch = question(self._history) if self._asking else None
        if epoch is None:
            self._asking = False
            return FetchFrom(self.epoch, log_end)
        return AskEpoch(self.epoch, epoch)

    def epoch_answered(self, asked: AskEpoch, answer: tuple[int, int], log_end: int, high_watermark: int) -> Cut | None:
        """Where to cut; None if the question is out of date."""
        if asked.current_epoch != self.epoch or not self._asking:
            return None
        result = cut(self._history, log_end, high_watermark, answer)
        self._asking = not result.done
        return result

    def wants(self, asked: FetchFrom, log_end: int) -> bool:
        """Whether the answer to ``asked`` goes on where the log ends, in this epoch."""
        return asked.current_epoch == self.epoch and not self._asking and asked.offset == log_end
