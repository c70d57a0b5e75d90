"""Where a follower cuts its log, by the tables of KIP-101 and KIP-279."""

from __future__ import annotations

import pytest

from since2011.log.epoch_history import EpochHistory
from since2011.replication.truncation import Cut, cut


def history(*entries: tuple[int, int]) -> EpochHistory:
    made = EpochHistory()
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


@pytest.mark.parametrize(
    ("own", "end", "watermark", "answer", "expected"),
    [
        pytest.param(((0, 0), (1, 3)), 5, 3, (0, 3), Cut(3, done=True), id="the run of an unclean election"),
        pytest.param(((0, 0),), 5, 2, (0, 9), Cut(5, done=True), id="behind: nothing is cut"),
        pytest.param(((0, 0),), 5, 2, (0, 4), Cut(4, done=True), id="ahead in the same epoch"),
        pytest.param(((0, 0), (2, 4)), 6, 1, (1, 3), Cut(4, done=False), id="an epoch only the leader has: ask again"),
        pytest.param(((0, 0),), 5, 2, (-1, -1), Cut(2, done=True), id="the leader knows of no epoch"),
    ],
)
def test_a_follower_cuts_where_histories_part(
    own: tuple[tuple[int, int], ...], end: int, watermark: int, answer: tuple[int, int], expected: Cut
) -> None:
    """A follower keeps what both logs have and asks again while it knows an epoch its leader never had (KIP-279)."""
    assert cut(history(*own), end, watermark, answer) == expected
