"""What a reader asks, of whom, and what answers mean: without sockets, in virtual time (issue 28, point 4)."""

from __future__ import annotations

import pytest

from kafka2011.types import TopicPartition
from since2011.client.backoff import Backoff
from since2011.client.fetch.errors import LogTruncated, NoOffsetForPartition, NotAllowed, PositionOutOfRange
from since2011.client.fetch.fetcher import Fetcher, Leader
from since2011.client.fetch.requests import Ask
from since2011.client.fetch.session import FetchSession, Row
from since2011.client.fetch.settings import FetchSettings
from since2011.client.group_metadata import OffsetAndMetadata
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.records import Record, encode_records

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Bench:
    """A fetcher with two partitions led by broker 1 in epoch 5, and a clock that stands still."""

    def __init__(self, **settings: object) -> None:
        self.fetcher = Fetcher(FetchSettings(**settings), Backoff(0.1, 1.0, lambda: 0.5))  # type: ignore[arg-type]
        self.now = 0.0
        self.lead({A: Leader(1, 5), B: Leader(1, 5)})

    def lead(self, leaders: dict[TopicPartition, Leader]) -> None:
        self.fetcher.set_leaders(leaders)

    def due(self) -> list[Ask]:
        return self.fetcher.due(self.now, lambda broker, key: True)

    def only(self, key: ApiKey) -> Ask:
        """The one request that is due."""
        (ask,) = self.due()
        assert ask.key is key
        return ask

    def answer(self, ask: Ask, rows: dict[TopicPartition, Struct], session: int = 0) -> None:
        topics = [Struct(name=p.topic, partitions=[row]) for p, row in rows.items()]
        self.fetcher.answered(ask, Struct(error=0, session_id=session, topics=topics), self.now)


def fetched(partition: TopicPartition, *offsets: int, error: int = 0, size: int = 1, **how: object) -> Struct:
    """A partition's part of a Fetch answer."""
    records = [Record(offset, 0, None, bytes(size)) for offset in offsets]
    data = encode_records(records, leader_epoch=5) if offsets else b""
    row = {"diverging_epoch": None, "aborted": None, "high_watermark": 100, "last_stable": 90, "log_start": 0}
    return Struct(index=partition.partition, error=error, records=data, **(row | how))


def row_of(ask: Ask, partition: TopicPartition = A) -> Struct:
    """What a request says of a partition."""
    (found,) = (p for topic in ask.body.topics for p in topic.partitions if p.index == partition.partition)
    return found


def test_one_fetch_is_under_way_and_the_next_runs_ahead() -> None:
    """What has come is given out while the next fetch is under way; the position is the application's."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    first = bench.only(ApiKey.FETCH)
    assert (row_of(first).offset, row_of(first).leader_epoch, row_of(first).last_epoch) == (7, 5, -1)
    assert bench.due() == []
    bench.answer(first, {A: fetched(A, 7, 8, 9)})
    ahead = bench.only(ApiKey.FETCH)
    assert (row_of(ahead).offset, row_of(ahead).last_epoch) == (10, 5)
    assert bench.fetcher.positions[A].position == OffsetAndMetadata(7)
    assert [record.offset for record in bench.fetcher.take(2)] == [7, 8]
    assert bench.fetcher.positions[A].position == OffsetAndMetadata(9, 5)


def test_a_full_partition_holds_its_broker_back() -> None:
    """A fetch that waits for the quiet ones would leave the full one dry: none is sent until half of it is gone."""
    bench = Bench(max_partition_fetch_bytes=1000)
    bench.fetcher.assign(A, OffsetAndMetadata(0))
    bench.fetcher.assign(B, OffsetAndMetadata(0))
    ask = bench.only(ApiKey.FETCH)
    bench.answer(ask, {A: fetched(A, 0, size=900)})
    assert bench.due() == []
    assert len(bench.fetcher.take(10)) == 1
    assert {one.partition for one in bench.only(ApiKey.FETCH).about} == {A, B}


def test_a_seek_outruns_the_answer() -> None:
    """What comes for a position that was moved meanwhile is dropped."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(50))
    ask = bench.only(ApiKey.FETCH)
    bench.fetcher.seek(A, OffsetAndMetadata(0))
    bench.answer(ask, {A: fetched(A, 50, 51)})
    assert bench.fetcher.take(10) == [] and row_of(bench.only(ApiKey.FETCH)).offset == 0


def test_where_to_begin_is_asked_or_raised() -> None:
    """auto.offset.reset: earliest and latest are looked up, none is the application's business (§14)."""
    for policy, time in (("earliest", -2), ("latest", -1)):
        bench = Bench(auto_offset_reset=policy)
        bench.fetcher.assign(A, None)
        ask = bench.only(ApiKey.LIST_OFFSETS)
        assert row_of(ask).timestamp == time
        bench.answer(ask, {A: Struct(index=0, error=0, offset=33, timestamp=-1, leader_epoch=4)})
        assert row_of(bench.only(ApiKey.FETCH)).offset == 33
    bench = Bench(auto_offset_reset="none")
    bench.fetcher.assign(A, None)
    assert bench.due() == []
    for _ in range(2):
        with pytest.raises(NoOffsetForPartition):
            bench.fetcher.take(1)


def test_out_of_range_is_asked_twice_before_the_position_moves() -> None:
    """A leader that has forgotten the epoch answers 1, too: asked again without it, then the rule decides; with none
    the application, and only after it was given what had come before."""
    bench = Bench(auto_offset_reset="earliest")
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, 7)})
    assert len(bench.fetcher.take(10)) == 1
    again = bench.only(ApiKey.FETCH)
    assert row_of(again).last_epoch == 5
    bench.answer(again, {A: fetched(A, error=1)})
    plain = bench.only(ApiKey.FETCH)
    assert row_of(plain).last_epoch == -1
    bench.answer(plain, {A: fetched(A, error=1)})
    assert bench.only(ApiKey.LIST_OFFSETS).key is ApiKey.LIST_OFFSETS

    bench = Bench(auto_offset_reset="none")
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, error=1)})
    with pytest.raises(PositionOutOfRange):
        bench.fetcher.take(1)
    bench.fetcher.seek(A, OffsetAndMetadata(8))
    assert row_of(bench.only(ApiKey.FETCH)).offset == 8


@pytest.mark.parametrize("error", [3, 5, 6, 56, 74, 75, 78])
def test_whoever_does_not_lead_is_left_after_a_pause(error: int) -> None:
    """Metadata is asked for, and nothing before the back-off is over; then the new leader (KIP-320)."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, error=error)})
    assert bench.fetcher.wants_metadata and bench.due() == [] and bench.fetcher.next_at(bench.now) == 0.1
    bench.lead({A: Leader(2, 6)})
    bench.now = 0.1
    assert bench.only(ApiKey.FETCH).broker == 2


def test_a_new_leader_is_compared_before_it_is_read() -> None:
    """Another epoch: OffsetForLeaderEpoch first; if its history contains what was read, reading goes on (KIP-320)."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, 7)})
    bench.fetcher.take(10)
    bench.lead({A: Leader(2, 6)})
    ask = bench.only(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    assert (row_of(ask).current_epoch, row_of(ask).epoch) == (6, 5)
    bench.answer(ask, {A: Struct(index=0, error=0, epoch=5, end_offset=8)})
    assert row_of(bench.only(ApiKey.FETCH)).offset == 8
    # A committed offset with an epoch is compared, too.
    bench.fetcher.assign(B, OffsetAndMetadata(3, 2))
    bench.lead({A: Leader(2, 6), B: Leader(1, 5)})
    assert {ask.key for ask in bench.due()} == {ApiKey.OFFSET_FOR_LEADER_EPOCH}


@pytest.mark.parametrize("by_fetch", [False, True], ids=["by epoch", "by a diverging fetch"])
def test_a_log_that_was_cut_off_is_noticed(by_fetch: bool) -> None:
    """What was read is not there any more: reading goes on at the cut, or with none LogTruncated names it (KIP-320).
    What was fetched and not given out is dropped without a word."""
    for policy in ("earliest", "none"):
        bench = Bench(auto_offset_reset=policy)
        bench.fetcher.assign(A, OffsetAndMetadata(7))
        bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, 7, 8)})
        bench.fetcher.take(10)
        if by_fetch:
            cut = Struct(epoch=3, end_offset=6)
            bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, diverging_epoch=cut)})
        else:
            bench.lead({A: Leader(2, 6)})
            ask = bench.only(ApiKey.OFFSET_FOR_LEADER_EPOCH)
            bench.answer(ask, {A: Struct(index=0, error=0, epoch=3, end_offset=6)})
        if policy == "none":
            with pytest.raises(LogTruncated) as raised:
                bench.fetcher.take(1)
            assert (raised.value.offset, raised.value.end_offset) == (9, 6)
        else:
            (event,) = bench.fetcher.take_events()
            assert (event.asked, event.moved_to) == (9, 6)  # type: ignore[attr-defined]
            assert bench.fetcher.positions[A].position == OffsetAndMetadata(6, 3)


def test_what_was_not_given_out_is_cut_off_in_silence() -> None:
    """Records that were fetched and not seen by anybody may go: the position stays, and is read anew."""
    bench = Bench(auto_offset_reset="none")
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {A: fetched(A, 7, 8, 9)})
    ahead = bench.only(ApiKey.FETCH)
    bench.answer(ahead, {A: fetched(A, diverging_epoch=Struct(epoch=3, end_offset=8))})
    assert bench.fetcher.take(10) == [] and row_of(bench.only(ApiKey.FETCH)).offset == 7


def test_a_lost_answer_costs_a_pause_and_the_session() -> None:
    """After a broken connection nothing is known of the session: everything is said again (KIP-227)."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(7))
    bench.answer(bench.only(ApiKey.FETCH), {}, session=77)
    ask = bench.only(ApiKey.FETCH)
    assert (ask.body.session_id, ask.body.session_epoch, ask.body.topics) == (77, 1, [])
    bench.fetcher.failed(ask, bench.now)
    assert bench.due() == [] and bench.fetcher.wants_metadata
    bench.now = 0.1
    ask = bench.only(ApiKey.FETCH)
    assert (ask.body.session_epoch, row_of(ask).offset) == (0, 7)


def test_a_topic_that_is_forbidden_is_said_and_others_are_read() -> None:
    """29 ends nothing but its partition."""
    bench = Bench()
    bench.fetcher.assign(A, OffsetAndMetadata(0))
    bench.fetcher.assign(B, OffsetAndMetadata(0))
    ask = bench.only(ApiKey.FETCH)
    bench.answer(ask, {A: fetched(A, error=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)), B: fetched(B, 0)})
    assert [record.partition for record in bench.fetcher.take(10)] == [1]
    with pytest.raises(NotAllowed):
        bench.fetcher.take(10)
    assert {one.partition for one in bench.only(ApiKey.FETCH).about} == {B}


def test_a_session_says_what_changed() -> None:
    """Full, then only changes and what is forgotten; without an id everything is said each time (KIP-227)."""
    session = FetchSession()
    one, two = Row(1, -1, 5, 10), Row(2, -1, 5, 10)
    assert session.request({A: one, B: two}) == (0, 0, {A: one, B: two}, [])
    session.answered(9)
    assert session.request({A: one, B: two}) == (9, 1, {}, [])
    session.answered(9)
    moved = one._replace(offset=4)
    assert session.request({A: moved}) == (9, 2, {A: moved}, [B])
    session.answered(9)
    assert session.request({A: moved, B: two}) == (9, 3, {B: two}, [])
    session.broken()
    assert session.request({A: moved}) == (9, 0, {A: moved}, [])
    session.answered(0)
    assert session.request({A: moved}) == (0, 0, {A: moved}, [])
