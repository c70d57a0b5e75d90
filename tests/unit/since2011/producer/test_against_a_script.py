"""A producer against a broker that does what the test says: order, blocking, time, errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from since2011.producer import (
    BufferExhausted,
    DeliveryTimedOut,
    FatalError,
    Producer,
    RecordRefused,
    RetriableError,
    TimedOut,
)
from since2011.producer.transaction_state import Wrong
from since2011.wire.codec import ApiKey, Header, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import read_header
from since2011.wire.records import decode_records
from tests.unit.since2011.client.scripted_broker import HANG_UP, ScriptedBroker
from tests.waiting import until


class Log:
    """The log of one partition, as a real broker keeps it; ``refuse`` decides about each request by its number."""

    def __init__(self, *refusals: ErrorCode | str | None) -> None:
        self.values: list[bytes | None] = []
        self.requests = 0
        self.sequences: list[tuple[int, int]] = []
        """Epoch and first sequence of every batch that arrived."""
        self._refusals = list(refusals)
        self._next: dict[int, int] = {}
        self.silent = threading.Event()

    def __call__(self, header: Header, body: Struct) -> Struct | str | None:
        if header.key == ApiKey.INIT_PRODUCER_ID:
            return Struct(error=0, producer_id=7, epoch=0)
        assert header.key == ApiKey.PRODUCE
        (topic,) = body.topics
        (row,) = topic.partitions
        batch = read_header(row.records)
        refusal = self._refusals[self.requests] if self.requests < len(self._refusals) else None
        self.requests += 1
        if batch.producer_id >= 0:
            self.sequences.append((batch.producer_epoch, batch.base_sequence))
        if self.silent.is_set():
            return None
        if refusal == HANG_UP:
            return HANG_UP
        code = refusal if isinstance(refusal, ErrorCode) else self._check(batch)
        if not code:
            self.values += [record.value for record in decode_records(row.records, batch, lambda codec, data: data)]
        answer = Struct(index=row.index, error=int(code), base_offset=len(self.values) - batch.n_records)
        return Struct(topics=[Struct(name=topic.name, partitions=[answer])])

    def _check(self, batch: Any) -> ErrorCode:
        if batch.producer_id < 0:
            return ErrorCode.NONE
        if batch.base_sequence != self._next.get(batch.producer_epoch, 0):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._next[batch.producer_epoch] = batch.last_sequence + 1
        return ErrorCode.NONE


def producer(broker: ScriptedBroker, **settings: object) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    quick = {"bootstrap.servers": broker.address, "retry.backoff.ms": 1, "reconnect.backoff.ms": 1, "linger.ms": 0}
    return Producer(quick | named)


def send_five(log: Log, under_way: int, **settings: object) -> list[bytes | None]:
    """Five batches of one record. No answer is given before so many requests are on their way."""
    answers = threading.Event()

    def script(header: Header, body: Struct) -> Struct | str | None:
        if header.key == ApiKey.PRODUCE:
            answers.wait(60)
        return log(header, body)

    with ScriptedBroker(script) as broker, producer(broker, batch_size=0, **settings) as sending:
        deliveries = [sending.send("t", b"%d" % n) for n in range(5)]
        until(lambda: sending.metrics().request_total == under_way, "the requests are on their way")
        answers.set()
        for delivery in deliveries:
            delivery.result(60)
    return log.values


REFUSED_ONCE = ErrorCode.NOT_LEADER_OR_FOLLOWER
IN_ORDER = [b"0", b"1", b"2", b"3", b"4"]


def test_without_idempotence_retries_break_the_order() -> None:
    """Notes, max.in.flight: with more than one in flight and no idempotence, a retry comes after what followed it."""
    log = Log(REFUSED_ONCE)
    found = send_five(log, 5, enable_idempotence=False, max_in_flight_requests_per_connection=5)
    assert found == [b"1", b"2", b"3", b"4", b"0"]


def test_with_one_in_flight_retries_keep_the_order() -> None:
    """Notes, max.in.flight: one at a time keeps the order without idempotence, too."""
    log = Log(REFUSED_ONCE, None, REFUSED_ONCE)
    found = send_five(log, 1, enable_idempotence=False, max_in_flight_requests_per_connection=1)
    assert found == IN_ORDER


def test_with_idempotence_five_in_flight_keep_the_order() -> None:
    """Notes, idempotence: order is kept with five in flight, because a broker takes only the next sequence."""
    log = Log(REFUSED_ONCE)
    assert send_five(log, 5) == IN_ORDER
    assert log.sequences[:5] == [(0, n) for n in range(5)]
    assert set(log.sequences[5:]) == set(log.sequences[:5])


def test_a_broker_that_forgot_the_producer() -> None:
    """KIP-360: after UNKNOWN_PRODUCER_ID the epoch is raised and sequences begin anew; nothing is lost or reordered."""
    log = Log(None, ErrorCode.UNKNOWN_PRODUCER_ID)
    with ScriptedBroker(log) as broker, producer(broker, batch_size=0) as sending:
        for n in range(5):
            sending.send("t", b"%d" % n).result(60)

    assert log.values == IN_ORDER
    assert log.sequences == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]


def test_a_full_buffer_blocks_and_then_raises() -> None:
    """Notes, buffer.memory and max.block.ms: a full buffer makes send() wait, for max.block.ms at most."""
    log = Log()
    log.silent.set()
    settings = {"batch_size": 1000, "buffer_memory": 3000, "max_block_ms": 300}
    with ScriptedBroker(log) as broker, producer(broker, **settings) as sending:
        for _ in range(3):
            sending.send("t", b"x" * 900)
        with pytest.raises(BufferExhausted, match=r"max\.block\.ms"):
            sending.send("t", b"x" * 900)
        assert sending.metrics().buffer_available_bytes == 0
        sending.close(0)


def test_a_full_buffer_that_empties_lets_the_sender_go_on() -> None:
    """Notes, buffer.memory: who waits for memory goes on as soon as a batch is settled."""
    log = Log()
    with ScriptedBroker(log) as broker, producer(broker, batch_size=1000, buffer_memory=1000) as sending:
        deliveries = [sending.send("t", b"%d" % n + b"." * 900) for n in range(50)]
        assert [delivery.result(60).offset for delivery in deliveries] == list(range(50))


def test_delivery_times_out() -> None:
    """Notes, delivery.timeout.ms: all retries together end then, and the error says that the record may be stored."""
    log = Log()
    log.silent.set()
    settings = {"request_timeout_ms": 100, "delivery_timeout_ms": 300}
    with ScriptedBroker(log) as broker, producer(broker, **settings) as sending:
        error = sending.send("t", b"v").exception(60)

    assert isinstance(error, DeliveryTimedOut) and error.retriable and not error.definite
    assert "not acknowledged" in str(error) and log.requests >= 1


def test_retries_end() -> None:
    """Notes, retries: so many more tries, then the broker's own error."""
    log = Log(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 10)
    with ScriptedBroker(log) as broker, producer(broker, retries=2, acks="all") as sending:
        error = sending.send("t", b"v").exception(60)

    assert isinstance(error, RetriableError) and "min.insync.replicas" in str(error)
    assert log.requests == 3


def test_errors_are_of_the_kind_that_says_what_to_do() -> None:
    """Issue 28.3: refused for its own sake, fatal, retriable; each message says what to do."""
    log = Log(ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    with ScriptedBroker(log) as broker, producer(broker) as sending:
        first = sending.send("t", b"v").exception(60)
        second = sending.send("t", b"v").exception(60)
        third = sending.send("t", b"v").result(60)

    assert isinstance(first, RecordRefused) and "compacted topic needs a key" in str(first)
    assert isinstance(second, FatalError) and "another topic" in str(second)
    assert third.offset == 0


def test_linger_waits_for_more() -> None:
    """Notes, linger.ms and batch.size: what comes within linger.ms travels together; a full batch goes at once."""
    log = Log()
    with ScriptedBroker(log) as broker, producer(broker, linger_ms=60_000, request_timeout_ms=50) as sending:
        together = [sending.send("t", b"%d" % n) for n in range(10)]
        sending.flush(60)
        assert [delivery.result().offset for delivery in together] == list(range(10))
        assert log.requests == 1
        full = [sending.send("t", b"x" * 10_000) for _ in range(2)]
        assert full[0].result(60).offset == 10  # without flush: the second did not fit, so the first went
        assert not full[1].done()


@pytest.mark.parametrize("in_flight", [1, 5])
def test_without_acknowledgements_nothing_waits(in_flight: int) -> None:
    """Notes, acks=0: a record counts as sent when it is written; requests follow one another without an answer."""
    log = Log()
    log.silent.set()
    settings = {"acks": 0, "batch_size": 0, "max_in_flight_requests_per_connection": in_flight}
    with ScriptedBroker(log) as broker, producer(broker, **settings) as sending:
        deliveries = [sending.send("t", b"%d" % n) for n in range(20)]
        assert [delivery.result(60).offset for delivery in deliveries] == [-1] * 20
        until(lambda: log.requests == 20, "all requests have arrived")


def test_nobody_there() -> None:
    """max.block.ms bounds the wait for metadata, and the error says why."""
    with ScriptedBroker(Log()) as broker:
        pass  # its port is closed now
    settings = {"bootstrap.servers": broker.address, "max.block.ms": 200}
    with Producer(settings) as sending, pytest.raises(TimedOut, match="nothing is known of topic t"):
        sending.send("t", b"v")


def test_callbacks_come_in_order_and_may_fail() -> None:
    """Notes, callbacks: on the producer's thread, in order of sending; one that raises harms nobody; none may wait."""
    log = Log(REFUSED_ONCE)
    told: list[object] = []
    trouble: list[Exception] = []
    with ScriptedBroker(log) as broker, producer(broker, batch_size=100) as sending:

        def callback(metadata: Any, error: Exception | None) -> None:
            told.append(metadata.offset)
            try:
                sending.flush()
            except Wrong as wrong:
                trouble.append(wrong)
            raise RuntimeError("a callback with a defect")

        for n in range(20):
            sending.send("t", b"%d" % n, on_delivery=callback)
        sending.flush(60)
        assert told == list(range(20)) and len(trouble) == 20
        assert sending.metrics().callback_errors == 20


def test_close_gives_up_what_is_left_after_its_time() -> None:
    """close(timeout): what is not acknowledged by then fails, with an error that says so; later sends are refused."""
    log = Log()
    log.silent.set()
    with ScriptedBroker(log) as broker:
        sending = producer(broker)
        delivery = sending.send("t", b"v")
        until(lambda: log.requests, "the request is there")
        sending.close(0.05)

        assert isinstance(delivery.exception(0), RetriableError)
        with pytest.raises(Exception, match="closed"):
            sending.send("t", b"v")


def test_what_is_no_bytes_is_refused() -> None:
    """Serialization: only bytes travel; the error says what to do."""
    with ScriptedBroker(Log()) as broker, producer(broker) as sending:
        for key, value, headers in ((None, 5, ()), ("k", b"v", ()), (None, "text", ()), (None, b"v", [("h", "text")])):
            with pytest.raises(RecordRefused, match=r"serializer|headers"):
                sending.send("t", value, key, headers=headers)
        assert sending.send("t", None, b"k").result(60).offset == 0


def test_a_record_larger_than_a_request() -> None:
    """max.request.size: too large is refused before it is sent."""
    with ScriptedBroker(Log()) as broker, producer(broker, max_request_size=1000) as sending:
        too_large = pytest.raises(RecordRefused, match=r"max\.request\.size")
        with too_large:
            sending.send("t", b"x" * 1000)


def test_an_unanswered_request_is_sent_again_on_a_new_connection() -> None:
    """request.timeout.ms: the connection is left and the batch sent again, under the same sequence."""
    log = Log(HANG_UP)
    with ScriptedBroker(log) as broker, producer(broker) as sending:
        assert sending.send("t", b"v").result(60).offset == 0

    assert log.sequences == [(0, 0), (0, 0)] and log.values == [b"v"]
