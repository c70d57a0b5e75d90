"""What a client knows of the cluster, and when it asks."""

from __future__ import annotations

import math
import uuid

import pytest

from since2011.client.backoff import Backoff
from since2011.client.metadata import NO_LEADER, Metadata
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def metadata() -> Metadata:
    return Metadata([("a", 1), ("b", 2)], max_age_s=300, backoff=Backoff(0.1, 1.0, lambda: 0.5))


def answer(*leaders: int, epoch: int = 0, topic_id: uuid.UUID = ONE, error: int = 0) -> Struct:
    partitions = [Struct(index=i, leader=leader, leader_epoch=epoch) for i, leader in enumerate(leaders)]
    topic = Struct(error=error, name="t", topic_id=topic_id, partitions=partitions)
    return Struct(brokers=[Struct(id=n, host="h", port=n) for n in (1, 2)], topics=[topic])


def test_it_asks_when_something_is_not_known(metadata: Metadata) -> None:
    """Metadata: asked at once for a new topic, once at a time, and again when it is too old."""
    metadata.want("t")
    assert metadata.due_at(5.0) == 5.0
    assert [topic.name for topic in metadata.question().topics] == ["t"]
    assert metadata.due_at(5.0) == math.inf

    metadata.apply(answer(1, 2), 6.0)

    assert metadata.due_at(6.0) == 306.0
    assert metadata.topics["t"].leaders == [1, 2]
    assert metadata.brokers[2] == ("h", 2) and metadata.brokers[-1] == ("a", 1)
    metadata.need_update()
    assert metadata.due_at(6.0) == pytest.approx(6.1)


def test_an_older_leader_is_not_believed(metadata: Metadata) -> None:
    """KIP-320: of two leaders of a partition the one with the larger epoch is right, unless the topic is another."""
    metadata.apply(answer(2, epoch=5), 1.0)
    metadata.apply(answer(1, epoch=4), 2.0)
    assert metadata.topics["t"].leaders == [2]

    metadata.apply(answer(1, epoch=0, topic_id=OTHER), 3.0)
    assert metadata.topics["t"].leaders == [1]


def test_without_a_leader_it_asks_again_and_again(metadata: Metadata) -> None:
    """retry.backoff.ms: what has no leader yet is asked for again, more and more seldom."""
    times = []
    now = 0.0
    for _ in range(5):
        metadata.question()
        metadata.apply(answer(NO_LEADER, 1), now)
        times.append(metadata.due_at(now) - now)
        now += 10

    assert times == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    assert metadata.topics["t"].available == [1]


def test_a_topic_that_is_refused(metadata: Metadata) -> None:
    """A topic that cannot be is known with the reason, until it can."""
    metadata.apply(answer(error=17), 1.0)
    assert metadata.errors == {"t": ErrorCode.INVALID_TOPIC}
    metadata.apply(answer(1), 2.0)
    assert metadata.errors == {}


def test_backoff_doubles_up_to_a_limit_and_differs() -> None:
    """Java 3.7+: exponential, a fifth more or less, so that not all clients come at once."""
    assert [Backoff(0.1, 1.0, lambda: 0.5).after(n) for n in (0, 1, 2, 3, 9)] == pytest.approx([0, 0.1, 0.2, 0.4, 1.0])
    assert Backoff(0.1, 1.0, lambda: 0.0).after(1) == pytest.approx(0.08)
    assert Backoff(0.1, 1.0, lambda: 1.0).after(1) == pytest.approx(0.12)
