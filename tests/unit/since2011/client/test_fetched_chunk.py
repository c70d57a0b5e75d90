"""What an application sees of fetched bytes (issue 28, point 4; sheet §8.10, §9.3)."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from kafka2011.types import TopicPartition
from since2011.client.fetch.chunk import FetchedChunk
from since2011.client.fetch.errors import BatchUnreadable
from since2011.wire import pure_records, record_walk
from since2011.wire.compression import compress
from since2011.wire.record_batch import TRANSACTIONAL
from since2011.wire.records import Marker, Record, encode_marker, encode_records

PLACE = TopicPartition("t", 3)


@pytest.fixture(
    autouse=True,
    params=[
        pytest.param(pure_records, id="pure"),
        pytest.param(
            record_walk.compiled,
            id="compiled",
            marks=pytest.mark.skipif(record_walk.compiled is None, reason="since2011.wire._records was not compiled"),
        ),
    ],
)
def walker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Both walkers."""
    monkeypatch.setattr(record_walk, "walk_records", request.param.walk_records)
    yield request.param


def batch(*offsets: int, epoch: int = 4, last: int | None = None, **how: object) -> bytes:
    """A batch of records named after their offsets; ``last``: it once ended there."""
    records = [Record(offset, 1000 + offset, None, b"%d" % offset) for offset in offsets]
    if last is not None:
        how["last_offset_delta"] = last - offsets[0]
    return encode_records(records, leader_epoch=epoch, **how)  # type: ignore[arg-type]


def marker(offset: int, producer: int, *, committed: bool) -> bytes:
    return encode_marker(Marker(committed, 0), producer_id=producer, producer_epoch=0, timestamp=1, offset=offset)


def chunk(data: bytes, offset: int = 0, aborted: tuple[tuple[int, int], ...] = (), **how: bool) -> FetchedChunk:
    return FetchedChunk(PLACE, data, offset, aborted, **({"committed": True, "check_crcs": True} | how))


def values(found: FetchedChunk, at_most: int = 100) -> list[int]:
    """Everything that is left, by offset."""
    seen = []
    while some := found.take(at_most):
        seen += [record.offset for record in some]
        assert all(record.value == b"%d" % record.offset and record.partition == 3 for record in some)
    return seen


def test_records_before_the_position_are_left_out() -> None:
    """A broker sends whole batches: reading begins inside one (§6.2)."""
    found = chunk(batch(0, 1, 2) + batch(3, 4), offset=1)
    assert values(found) == [1, 2, 3, 4] and found.offset == found.next_offset == 5


def test_gaps_of_compaction_move_the_position() -> None:
    """Offsets that are gone, inside a batch, at its end, and a batch emptied altogether (§9.3)."""
    empty = encode_records([], base_offset=20, last_offset_delta=9, base_timestamp=0, max_timestamp=0, leader_epoch=5)
    found = chunk(batch(0, 4, last=19) + empty)
    assert [record.offset for record in found.take(1)] == [0] and found.offset == 1
    assert [record.offset for record in found.take(1)] == [4]
    # The rest of the batch is a gap: nothing more can come of it.
    assert found.offset == 20
    assert found.take(1) == [] and (found.offset, found.last_epoch) == (30, 5)


def test_aborted_transactions_are_left_out_and_no_others() -> None:
    """Two producers, interleaved: the list says where transactions begin, ABORT markers where they end (§8.10)."""
    first = {"attributes": TRANSACTIONAL, "producer_id": 1, "producer_epoch": 0}
    second = first | {"producer_id": 2}
    data = batch(0, **first) + batch(1, **second) + batch(2) + marker(3, 1, committed=False) + batch(4, **first)
    data += marker(5, 2, committed=True) + batch(6, **second) + marker(7, 1, committed=True)
    data += marker(8, 2, committed=False)
    aborted = ((0, 1), (6, 2))
    assert values(chunk(data, aborted=aborted)) == [1, 2, 4]
    # Control: the same bytes, read uncommitted. Markers are nobody's records either way.
    assert values(chunk(data, aborted=aborted, committed=False)) == [0, 1, 2, 4, 6]


def test_markers_move_the_position() -> None:
    """A chunk of markers alone leads on to what comes after them."""
    found = chunk(marker(0, 1, committed=True) + marker(1, 2, committed=False))
    assert values(found) == [] and found.offset == 2


def test_a_damaged_batch_is_raised_where_it_is() -> None:
    """What comes before is given out, the error says how to pass the batch; unchecked, the CRC is not looked at."""
    good, bad = batch(0, 1), bytearray(batch(2, 3))
    bad[17] ^= 1  # the CRC
    found = chunk(good + bytes(bad) + batch(4))
    assert len(found.take(100)) == 2
    for _ in range(2):
        with pytest.raises(BatchUnreadable, match="t-3: a batch fails its CRC-32C; seek to 4") as raised:
            found.take(100)
    assert (raised.value.offset, raised.value.next_offset, found.offset) == (2, 4, 2)
    assert values(chunk(good + bytes(bad), check_crcs=False)) == [0, 1, 2, 3]


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    """Brokers cut the last batch where the room ends (§6.2)."""
    found = chunk(batch(0) + batch(1, 2)[:-1])
    assert found.next_offset == 1 and values(found) == [0]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_codecs_and_append_time(codec: int) -> None:
    """A compressed batch stamped by the broker: every record has the batch's time (§1.1)."""
    found = chunk(batch(0, 1, 2, attributes=codec | 0x08, max_timestamp=77, deflate=compress)).take(10)
    assert [(record.offset, record.timestamp, record.timestamp_type) for record in found] == [
        (offset, 77, 1) for offset in range(3)
    ]
    assert {record.leader_epoch for record in found} == {4}
