"""The accumulator under any order of appends, drains, failures and settlings (issue 28.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from since2011.client.metadata import TopicPlaces
from since2011.producer.accumulator import Accumulator
from since2011.producer.batch import Batch, Outcome
from since2011.producer.record import OVERHEAD
from since2011.wire.codec import NO_UUID

BATCH, MEMORY, PARTITIONS = 200, 1000, 3
APPEND, DRAIN, SETTLE, FAIL = "append", "drain", "settle", "fail"

steps = st.lists(
    st.one_of(
        st.tuples(st.just(APPEND), st.integers(0, PARTITIONS - 1), st.integers(0, 300)),
        st.tuples(st.just(DRAIN), st.integers(1, 600), st.booleans()),
        st.tuples(st.just(SETTLE), st.integers(0, 9), st.none()),
        st.tuples(st.just(FAIL), st.integers(0, 9), st.none()),
    ),
    max_size=80,
)


def made() -> Accumulator:
    accumulator = Accumulator(batch_size=BATCH, linger_s=10.0, memory=MEMORY)
    accumulator.place("t", TopicPlaces(NO_UUID, [1] * PARTITIONS, [0] * PARTITIONS))
    return accumulator


def check(accumulator: Accumulator, under_way: list[Batch]) -> None:
    """Memory is what the batches hold; every batch is in exactly one place; none is too large."""
    queued = [batch for queue in accumulator.queues["t"] for batch in queue.batches]
    assert set(accumulator.incomplete) == {*queued, *under_way}
    assert accumulator.free == MEMORY - sum(batch.reserved for batch in accumulator.incomplete)
    assert set(accumulator.active()) == {queue for queue in accumulator.queues["t"] if queue.batches}
    assert all(batch.size <= BATCH or len(batch) == 1 for batch in queued)


@given(steps=steps)
def test_no_record_is_lost_or_reordered_and_memory_is_accounted_for(steps: list[tuple[str, int, object]]) -> None:
    """Each record is settled once, in order of its partition (one batch of it under way at a time); memory returns."""
    accumulator, now = made(), 0.0
    under_way: list[Batch] = []
    sent: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    settled: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    counter = 0

    def drain(limit: int) -> None:
        free = [queue for queue in accumulator.active() if not any(batch.queue is queue for batch in under_way)]
        taken = list(accumulator.drain(free, limit, now, lambda queue, batch: True))
        assert len({batch.queue for batch in taken}) == len(taken), "one batch of a partition in a request"
        assert len(taken) <= 1 or sum(batch.size for batch in taken) <= limit
        under_way.extend(taken)

    def settle(batch: Batch) -> None:
        under_way.remove(batch)
        settled[batch.queue.partition] += [row[0] for row in batch.rows]
        batch.settle(Outcome(0))
        accumulator.settled(batch)

    for kind, number, extra in steps:
        now += 1.0
        if kind == APPEND:
            assert isinstance(extra, int)
            queue, size = accumulator.queues["t"][number], extra + OVERHEAD
            row = (counter + 1, None, b"x" * extra, ())
            delivery = accumulator.extend(queue, row, size, None)
            if delivery is None and accumulator.has_memory(size):
                delivery = accumulator.begin(queue, row, size, None, now)
            if delivery is not None:
                counter += 1
                assert delivery.batch.rows[delivery.position][0] == counter
                sent[number].append(counter)
        elif kind == DRAIN:
            drain(number)
        elif kind == SETTLE and under_way:
            settle(under_way[number % len(under_way)])
        elif kind == FAIL and under_way:
            batch = under_way.pop(number % len(under_way))
            batch.attempts += 1
            accumulator.put_back(batch.queue, batch)
        check(accumulator, under_way)
    while accumulator.incomplete:
        drain(1)
        settle(under_way[0])

    assert settled == sent
    assert accumulator.free == MEMORY


def test_the_check_sees_what_it_should() -> None:
    """Control: a batch that is forgotten, or memory that is not given back, is found."""
    accumulator = made()
    accumulator.begin(accumulator.queues["t"][0], (1, None, b"x", ()), 30, None, 0.0)
    (batch,) = accumulator.incomplete
    check(accumulator, [])
    accumulator.withdraw(batch)
    for broken in (lambda: check(accumulator, []), lambda: check(accumulator, [batch, batch.split(0)[0]])):
        try:
            broken()
        except AssertionError:
            continue
        raise AssertionError("the check is blind")
