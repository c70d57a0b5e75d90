"""A follower takes what its leader sends, as it is, if it can be believed (§4.6 of the sheet)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.errors import InvalidMessage
from since2011.log.identity import Identity
from since2011.log.manager import LogManager
from since2011.replication.copy import Copy, Logs, new_copy
from since2011.replication.follower import FetchFrom
from since2011.replication.partition_state import PartitionState
from since2011.replication.throttle import Throttle
from since2011.wire.codec import Struct
from since2011.wire.record_batch import assign
from tests.unit.since2011.replication.bench import batch

ME, LEADER = 1, 2


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    manager = LogManager([tmp_path / "logs"], Identity(ME, "4lXOlHdzR7eFnm5NhfMSNA"))
    manager.start()
    yield manager
    manager.close()


@pytest.fixture
def copy(logs: LogManager) -> Copy:
    state = PartitionState(LEADER, 5, (LEADER, ME), (LEADER, ME))
    found = new_copy(ME, "t", 0, state, Logs(logs.get, logs.get_or_create, logs.checkpoint))
    assert found.follower.next_request(0) == FetchFrom(5, 0)
    return found


def sent(offset: int, *values: bytes, epoch: int = 5) -> bytes:
    """A batch as the leader has stored it."""
    data = batch(*values)
    assign(data, offset, epoch)
    return bytes(data)


def answer(records: bytes, high_watermark: int, log_start: int = 0) -> Struct:
    return Struct(records=records, high_watermark=high_watermark, log_start=log_start)


def test_bytes_are_appended_as_they_are(copy: Copy) -> None:
    """Offsets, epochs and bytes are the leader's; the watermark is never beyond what is here."""
    data = sent(0, b"a", b"b")
    assert copy.fetched(FetchFrom(5, 0), answer(data, 9)) == len(data)
    log = copy.log
    assert log is not None
    assert (log.log_end_offset, log.high_watermark) == (2, 2)
    assert (log.directory / "00000000000000000000.log").read_bytes() == data
    assert log.epochs.latest == 5


def test_an_answer_nobody_waits_for_is_passed_over(copy: Copy) -> None:
    """What was asked for in another epoch, or from another place, is not appended (KAFKA-7786)."""
    data = sent(0, b"a")
    assert copy.fetched(FetchFrom(4, 0), answer(data, 1)) == 0
    assert copy.fetched(FetchFrom(5, 7), answer(data, 1)) == 0
    assert copy.log_end == 0


def test_damage_on_the_way_is_not_stored(copy: Copy) -> None:
    """A batch whose checksum does not fit is refused, and nothing of the answer is kept."""
    damaged = bytearray(sent(0, b"abcdefgh"))
    damaged[-3] ^= 1
    with pytest.raises(InvalidMessage):
        copy.fetched(FetchFrom(5, 0), answer(bytes(damaged), 1))
    assert copy.log_end == 0


def test_a_batch_that_was_cut_is_left_out(copy: Copy) -> None:
    """The last batch of an answer may be cut; it comes whole the next time."""
    whole, cut = sent(0, b"a"), sent(1, b"b")[:-4]
    copy.fetched(FetchFrom(5, 0), answer(whole + cut, 2))
    assert copy.log_end == 1


def test_the_start_of_the_log_follows_the_leaders(copy: Copy) -> None:
    """What the leader has let go of, its followers let go of."""
    copy.fetched(FetchFrom(5, 0), answer(sent(0, b"a", b"b", b"c"), 3))
    copy.fetched(FetchFrom(5, 3), answer(b"", 3, log_start=2))
    assert copy.log_start == 2


def test_a_watermark_here_does_not_go_back(copy: Copy) -> None:
    """A leader that knows less yet lowers no watermark: what was committed stays so (goals)."""
    copy.fetched(FetchFrom(5, 0), answer(sent(0, b"a", b"b"), 2))
    copy.fetched(FetchFrom(5, 2), answer(b"", 1))
    assert copy.high_watermark == 2


def test_pauses_grow_up_to_the_longest(copy: Copy) -> None:
    """A partition that is refused asks again soon, and then ever later."""
    for _ in range(10):
        copy.wait(100.0, 1.0)
    assert copy.due == 101.0
    copy.backoff_s = 0.0
    copy.wait(100.0, 1.0)
    assert copy.due < 100.1


def test_only_listed_replicas_that_are_behind_are_held_back(copy: Copy) -> None:
    """The replication throttle holds back who is listed and behind, for as long as the rate says (KIP-73)."""
    now, listed = [0.0], [True]
    throttle = Throttle(lambda: now[0], lambda: 1000, lambda topic, index: listed[0])
    throttle.took(copy, 2000)
    assert throttle.holds_back(copy)
    copy.has_lag = False
    assert not throttle.holds_back(copy)
    copy.has_lag, now[0] = True, 2.5
    assert not throttle.holds_back(copy)
    throttle.took(copy, 5000)
    listed[0] = False
    assert not throttle.holds_back(copy)
