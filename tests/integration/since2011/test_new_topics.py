"""Topics that strangers ask for: they stop nobody, have limits, and what is refused leaves nothing (19 B3, 20 C2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.bystander import Bystander, MiB
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until


def ask_about(client: WireClient, names: list[str]) -> dict[str, int]:
    """Metadata of these, to be created if need be; the error of each."""
    body = Struct(topics=[Struct(name=name) for name in names], auto_create=True)
    return {topic.name: topic.error for topic in client.ask(ApiKey.METADATA, 8, body).topics}


def create(client: WireClient, names: list[str], partitions: int) -> Struct:
    """CreateTopics."""
    topics = [Struct(name=name, partitions=partitions, replication=1, assignments=[], configs=[]) for name in names]
    return client.ask(ApiKey.CREATE_TOPICS, 4, Struct(topics=topics, timeout_ms=1000, validate_only=False))


def test_a_thousand_topics_in_one_request_stop_nobody() -> None:
    """Metadata for 1,000 unknown topics held up everybody for 3.7 s, for 3,000 49 s: others are served all along."""
    with (
        BrokerProcess(options=OPTIONS | {"max.topic.creations.per.second": 0}) as broker,
        WireClient(broker.modern_port or 0) as client,
        Bystander(broker) as bystander,
    ):
        until(lambda: len(bystander.waits_s) > 20, "the bystander is served")
        n_before = len(bystander.waits_s)
        told = ask_about(client, [f"t{n}" for n in range(1_000)])
        n_meanwhile = len(bystander.waits_s) - n_before
        assert set(told.values()) == {ErrorCode.NONE}
        assert n_meanwhile > 20, "answers to others while a thousand directories were made"
        assert bystander.grown < 256 * MiB


@pytest.fixture(scope="module")
def small() -> Iterator[BrokerProcess]:
    """A broker that creates five topics at once, and another one every few seconds at most."""
    limits = {"max.topic.creations.per.second": 1, "max.topic.creations.burst": 5}
    with BrokerProcess(options=OPTIONS | limits) as process:
        yield process


def test_an_address_can_have_so_many_created_and_no_more(small: BrokerProcess) -> None:
    """Five of 400 at once; the others are told to ask again, on both ports and in every request that creates."""
    with WireClient(small.modern_port or 0) as client:
        told = ask_about(client, [f"first-{n}" for n in range(400)])
        counted = Counter(told.values())
        assert set(counted) == {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}
        assert 5 <= counted[ErrorCode.NONE] <= 20
        assert [told[f"first-{n}"] for n in range(5)] == [0] * 5, "in the order they were asked for"
        asked = create(client, [f"second-{n}" for n in range(400)], 3)
        assert {topic.error for topic in asked.topics[50:]} == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
        assert "try again" in asked.topics[-1].message
        assert asked.throttle_ms > 0
        produced = {client.produce(f"third-{n}", [b"x"]).error for n in range(50)}
        assert ErrorCode.LEADER_NOT_AVAILABLE in produced <= {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}
    with BrokerConnection(small.host, small.port) as old:
        for n in range(50):
            old.produce(f"fourth-{n}", 0, encode_set([b"x"]))

    def n_dropped() -> int:
        return int(small.state()["counters"]["dropped_sets"].get("TooManyTopics", 0))

    until(lambda: n_dropped() > 10, "2011 sets are dropped by name")
    assert len(small.state()["topics"]) < 60
    with WireClient(small.modern_port or 0) as client:
        until(lambda: ask_about(client, ["fifth"])["fifth"] == 0, "in the long run everybody is served")


def test_refused_names_leave_nothing(tmp_path: Path) -> None:
    """400 names of which three can be: the others are refused by name (44), before anything is written; neither the
    file of partition counts nor the disk has heard of them, nor has the next start."""
    with BrokerProcess(tmp_path, OPTIONS | {"max.topics": 3, "max.partitions": 20}) as broker:
        with WireClient(broker.modern_port or 0) as client:
            told = [topic.error for topic in create(client, [f"t{n}" for n in range(400)], 7).topics]
            assert told == [0, 0] + [ErrorCode.POLICY_VIOLATION] * 398, "14 of 20 partitions are taken, 7 more are not"
            assert ask_about(client, ["small", "next"]) == {"small": 0, "next": ErrorCode.POLICY_VIOLATION}
            assert client.produce("another", [b"x"]).error == ErrorCode.POLICY_VIOLATION
            assert ask_about(client, ["t0", "t1"]) == {"t0": 0, "t1": 0}
        there = {path.name for path in tmp_path.iterdir() if path.is_dir() and not path.name.startswith(".")}
        assert there == {"t0-0", "t1-0", "small-0"}
        assert json.loads((tmp_path / ".modern" / "topics.json").read_text()) == {"t0": 7, "t1": 7}
        broker.restart()
        assert set(broker.state()["topics"]) == {"t0", "t1", "small"}
