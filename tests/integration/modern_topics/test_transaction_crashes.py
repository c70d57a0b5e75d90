"""A coordinator killed at each step of a transaction: the table of docs/transactions.md, row by row (sheet §8.9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_transactions import offset_of, until_not_loading
from tests.integration.modern_topics.transactional import Transactional, fetched, read
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until

TOPIC, GROUP, NAME = "crash", "g", "tx"
QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50, "num.partitions": 2}


class Crashing:
    """A broker that can be told to die at a step, and a producer that goes on with the next process."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.client = self._connected()

    def _connected(self) -> WireClient:
        assert self.broker.modern_port is not None
        return WireClient(self.broker.modern_port)

    def again(self) -> WireClient:
        """Kill the broker if it lives, and start it anew."""
        self.client.close()
        self.broker.kill()
        self.broker.environ.clear()
        self.broker.restart()
        self.client = self._connected()
        return self.client

    def dies(self, work: object) -> WireClient:
        """Do what kills it, wait until it is dead, and start it anew."""
        assert callable(work)
        with suppress(ConnectionError):
            work()
        process = self.broker.process
        assert process is not None
        until(lambda: process.poll() is not None, "the broker dies where it was told to")
        return self.again()

    def producer(self, timeout_ms: int = 60_000) -> Transactional:
        """A new instance."""
        return Transactional(self.client, NAME, timeout_ms).init()

    def aborted(self) -> list[Path]:
        """The transaction indexes of the topic: there is one only where a transaction with data was aborted."""
        return list(self.broker.log_dir.glob(f".modern/logs/{TOPIC}-*/*.txnindex"))


@pytest.fixture
def crashing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Crashing]:
    """A broker of the test's own that dies at the step its mark names; one topic, and a place for a group's offsets."""
    mark = request.node.get_closest_marker("dies_at")
    environ = {} if mark is None else {"KAFKA2011_FAILPOINTS": mark.args[0]}
    with BrokerProcess(tmp_path / "data", OPTIONS | QUICK, environ=environ) as broker:
        found = Crashing(broker)
        for partition in (0, 1):
            assert not found.client.produce(TOPIC, [b"before"], partition=partition).error
        for kind, key in ((0, GROUP), (1, NAME)):
            body = Struct(key=key, key_type=kind)
            until(lambda body=body: not found.client.ask(ApiKey.FIND_COORDINATOR, 2, body).error, "a coordinator")
        yield found
        found.client.close()


def goes_on(producer: Transactional, client: WireClient) -> Transactional:
    """The same instance, connected to the new process."""
    producer.client = client
    return producer


@pytest.mark.dies_at("transactions.empty.after=kill")
def test_after_init_producer_id_was_written(crashing: Crashing) -> None:
    """The answer was lost: the client asks again and gets the next epoch."""
    crashing.dies(lambda: Transactional(crashing.client, NAME).init())

    assert crashing.producer().epoch == 1, "epoch 0 was given to nobody"


@pytest.mark.dies_at("transactions.ongoing.after=kill")
def test_after_a_partition_was_added(crashing: Crashing) -> None:
    """Ongoing without data: the timeout aborts it; a marker without data leaves nothing in the transaction index."""
    producer = crashing.producer(timeout_ms=100)
    client = crashing.dies(lambda: producer.add_once(TOPIC, 0))
    until(goes_on(producer, client).is_complete, "its time is over")

    assert (producer.described().state, client.end(TOPIC)) == ("CompleteAbort", 2)
    assert crashing.aborted() == []


def test_after_data_was_written(crashing: Crashing) -> None:
    """Ongoing with data: readers of committed records wait; the client goes on and commits."""
    producer = crashing.producer()
    producer.add(TOPIC, 0)
    producer.produce(TOPIC, b"a")
    client = crashing.again()
    goes_on(producer, client)
    before = fetched(client, TOPIC, committed=True).last_stable
    producer.produce(TOPIC, b"b")
    producer.end(commit=True)
    until(producer.is_complete, "the marker is written")

    assert before == 1
    assert read(client, TOPIC, committed=True) == [b"before", b"a", b"b"]


def test_after_data_was_written_and_the_client_died_too(crashing: Crashing) -> None:
    """Ongoing with data: the time counts from the stored start, the timeout aborts, and readers go on."""
    producer = crashing.producer(timeout_ms=100)
    producer.add(TOPIC, 0)
    producer.produce(TOPIC, b"never")
    client = crashing.again()
    until(goes_on(producer, client).is_complete, "its time is over")

    assert read(client, TOPIC, committed=True) == [b"before"]
    assert client.end(TOPIC) == fetched(client, TOPIC, committed=True).last_stable


def ending(step: str) -> pytest.MarkDecorator:
    """Once with a commit, once with an abort; ``{}`` in the step stands for which."""
    return pytest.mark.parametrize(
        "commit",
        [
            pytest.param(commit, marks=pytest.mark.dies_at(step.format(word)), id=word)
            for commit, word in ((True, "commit"), (False, "abort"))
        ],
    )


@ending("transactions.prepare_{}.before=kill")
def test_before_the_decision_was_written(crashing: Crashing, commit: bool) -> None:
    """EndTxn came and nothing is in the log: the transaction goes on, and the client ends it again."""
    producer = crashing.producer()
    producer.add(TOPIC, 0)
    producer.produce(TOPIC, b"a")
    client = crashing.dies(lambda: producer.end_once(commit=commit))
    state = goes_on(producer, client).described().state
    producer.end(commit=commit)
    until(producer.is_complete, "the marker is written")

    assert state == "Ongoing"
    assert [b"before", *([b"a"] if commit else [])] == read(client, TOPIC, committed=True)


@ending("transactions.marker.before=kill")
def test_before_the_first_marker(crashing: Crashing, commit: bool) -> None:
    """Prepare* in the log, no marker: the new process writes them, then Complete*."""
    carried_out(crashing, commit)


@ending("transactions.marker.before=kill@2")
def test_between_two_markers(crashing: Crashing, commit: bool) -> None:
    """Prepare* in the log, one of two markers written: the new process writes both; a second one closes nothing."""
    carried_out(crashing, commit)


@ending("transactions.complete_{}.before=kill")
def test_after_the_last_marker(crashing: Crashing, commit: bool) -> None:
    """All markers written, Complete* not: the new process writes all of it again."""
    carried_out(crashing, commit)


def carried_out(crashing: Crashing, commit: bool) -> None:
    """A decision that was taken stands, wherever its coordinator died."""
    producer = crashing.producer()
    producer.add(TOPIC, 0, 1)
    for partition in (0, 1):
        producer.produce(TOPIC, b"a", partition=partition)
    client = crashing.dies(lambda: producer.end_once(commit=commit))
    until(goes_on(producer, client).is_complete, "the markers are written by the new process")
    seen = [read(client, TOPIC, committed=True, partition=partition) for partition in (0, 1)]

    assert [[b"before", *([b"a"] if commit else [])]] * 2 == seen
    assert producer.end_once(commit=commit) == ErrorCode.NONE, "who asks again is told that it is so"
    assert producer.end_once(commit=not commit) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_after_offsets_were_written(crashing: Crashing, commit: bool) -> None:
    """TxnOffsetCommit in the log without a marker: pending again, until the marker (§10.2)."""
    producer = crashing.producer()
    producer.add_offsets(GROUP)
    assert until_not_loading(lambda: producer.commit_offset(GROUP, TOPIC, 1)) == ErrorCode.NONE
    client = crashing.again()
    goes_on(producer, client)
    pending = until(lambda: settled(offset_of(client, GROUP, TOPIC, stable=True)), "the offsets are read")
    producer.end(commit=commit)
    until(producer.is_complete, "the marker is written")

    assert pending.error == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert (0, 1 if commit else -1) == (0, offset_of(client, GROUP, TOPIC, stable=True).offset)


def settled(answer: Struct) -> Struct | None:
    """The answer, once the coordinator has read its offsets."""
    return None if answer.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else answer
