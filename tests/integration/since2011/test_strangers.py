"""Strangers who bring much and stay short: the broker keeps little of it, and serves others meanwhile (19 B4, B5)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.bystander import Bystander, MiB
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker whose groups wait for more members for a second, so that joins are parked."""
    with BrokerProcess(options=OPTIONS | {"group.initial.rebalance.delay.ms": 1_000}) as process:
        yield process


@pytest.fixture
def bystander(broker: BrokerProcess) -> Iterator[Bystander]:
    """Somebody else, served before it begins."""
    with Bystander(broker) as found:
        until(lambda: len(found.waits_s) > 10, "the bystander is served")
        yield found


def join_body(group: str, size: int) -> Struct:
    """A JoinGroup of version 3: no id, no handshake, parked at once."""
    return Struct(
        group=group, session_ms=10_000, rebalance_ms=10_000, member="", type="consumer",
        protocols=[Struct(name="range", metadata=b"x" * size)],
    )  # fmt: skip


def groups_of(broker: BrokerProcess) -> set[str]:
    """The groups the broker has."""
    return set(broker.state()["plugins"]["modern"]["groups"])


def n_members(broker: BrokerProcess, name: str) -> int:
    """How many members the groups whose names begin so have."""
    groups = broker.state()["plugins"]["modern"]["groups"].items()
    return sum(len(each["members"]) for group, each in groups if group.startswith(name))


def test_joins_with_closed_connections_are_not_kept(broker: BrokerProcess, bystander: Bystander) -> None:
    """1,200 joins of 1 MB kept 1.2 GiB. Of 300 with 250 KB each, as much as is allowed, nothing is left but what a
    process keeps for the next time; those of 1 MB are refused by name."""
    assert broker.modern_port is not None
    with WireClient(broker.modern_port) as client:
        answer = client.ask(ApiKey.JOIN_GROUP, 3, join_body("large", 1_000_000))
        assert answer.error == ErrorCode.INVALID_REQUEST
    for n in range(300):
        with WireClient(broker.modern_port) as client:
            client.send(ApiKey.JOIN_GROUP, 3, join_body(f"joined-{n}", 250_000))
    until(lambda: not {name for name in groups_of(broker) if name.startswith("joined")}, "all are forgotten")
    assert bystander.grown < 150 * MiB


def test_joins_that_stay_have_a_limit(broker: BrokerProcess, bystander: Bystander) -> None:
    """220 open connections with 250 KB each would be 55 MB: beyond three quarters of the limit they are told to come
    back later, and somebody small still gets in."""
    assert broker.modern_port is not None
    held = [WireClient(broker.modern_port) for _ in range(220)]
    try:
        for n, client in enumerate(held):
            client.send(ApiKey.JOIN_GROUP, 3, join_body(f"held-{n}", 250_000))
        last = held[-1].receive(ApiKey.JOIN_GROUP, 3)[1]
        assert last.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        with WireClient(broker.modern_port) as client:
            assert client.ask(ApiKey.JOIN_GROUP, 3, join_body("small", 100)).error == ErrorCode.NONE
    finally:
        for client in held:
            client.close()
    until(lambda: n_members(broker, "held") == 0, "they go with their sessions")


def test_refused_commits_leave_no_groups(broker: BrokerProcess, client: WireClient) -> None:
    """1,000 refused commits of groups with names of 30 KB left 1,000 groups and 31 MiB (issue 20 C3)."""
    rows = [Struct(name="nowhere", partitions=[Struct(index=0, offset=1, metadata="")])]
    before = groups_of(broker)
    for n in range(50):
        for name, error in ((f"refused-{n}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("x" * 30_000, 24)):
            answer = client.ask(ApiKey.OFFSET_COMMIT, 7, Struct(group=name, member="", topics=rows))
            assert answer.topics[0].partitions[0].error == error
    assert groups_of(broker) == before


def test_giant_commits_hold_up_nobody(broker: BrokerProcess, client: WireClient, bystander: Bystander) -> None:
    """60 commits of very many partitions, sent at once, were 2.3 s for everybody else. They are taken in slices: while
    they are, others are served all the time; and every partition is answered, in order."""
    client.produce("giant", [b"x"])
    partitions = [Struct(index=n % 3, offset=n, metadata="") for n in range(20_000)]
    body = Struct(group="giant", member="", topics=[Struct(name="giant", partitions=partitions)])
    n_before = len(bystander.waits_s)
    for _ in range(6):
        client.send(ApiKey.OFFSET_COMMIT, 7, body)
    for _ in range(6):
        _, answer = client.receive(ApiKey.OFFSET_COMMIT, 7)
        errors = [one.error for one in answer.topics[0].partitions]
        assert errors == [0 if n % 3 == 0 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for n in range(20_000)]
    assert len(bystander.waits_s) - n_before > 20, "others were served all along"
    fetch = Struct(group="giant", topics=[Struct(name="giant", partitions=[0])])
    assert client.ask(ApiKey.OFFSET_FETCH, 5, fetch).topics[0].partitions[0].offset == 19_998


def test_order_holds_behind_a_giant(client: WireClient) -> None:
    """A request that is read in a thread takes effect before those sent behind it on the same connection."""
    client.produce("ordered", [b"x"])
    rows = [Struct(name="ordered", partitions=[Struct(index=0, offset=7, metadata="n" * 100)] * 3_000)]
    fetch = Struct(group="ordered", topics=[Struct(name="ordered", partitions=[0])])
    client.send(ApiKey.OFFSET_COMMIT, 7, Struct(group="ordered", member="", topics=rows))
    client.send(ApiKey.API_VERSIONS, 0, Struct())
    client.receive(ApiKey.OFFSET_COMMIT, 7)
    client.receive(ApiKey.API_VERSIONS, 0)
    assert client.ask(ApiKey.OFFSET_FETCH, 5, fetch).topics[0].partitions[0].offset == 7
