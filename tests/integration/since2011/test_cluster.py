"""Several brokers in ZooKeeper, seen by modern clients as one cluster.

Paper: §3.2. See docs/group-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.wire_client import WireClient, fetch_body
from tests.waiting import until


@pytest.fixture
def two(zk_connect: str) -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    """Brokers 1 and 2, registered."""
    options = OPTIONS | {"zk.connect": zk_connect, "num.partitions": 2, "zk.sessiontimeout.ms": 2000}
    first, second = (BrokerProcess(options=options | {"brokerid": number}) for number in (1, 2))
    with first, second:
        yield first, second


def metadata(client: WireClient, topic: str) -> Struct:
    """Brokers and one topic."""
    return client.ask(ApiKey.METADATA, 8, Struct(topics=[Struct(name=topic)], auto_create=False))


def answers(coordinator: WireClient, heartbeat: Struct) -> bool:
    """Whether it speaks for the group; until it has the offsets it says 14, and nothing else."""
    error = coordinator.ask(ApiKey.HEARTBEAT, 3, heartbeat).error
    assert error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
    return bool(error == ErrorCode.UNKNOWN_MEMBER_ID)


def test_one_cluster(two: tuple[BrokerProcess, BrokerProcess]) -> None:
    """Partitions are numbered over the brokers, all say the same; a dead broker's keep their numbers (§3.2)."""
    for broker in two:
        with BrokerConnection(broker.host, broker.port) as old:
            old.produce("t", 0, encode_set([b"from broker %d" % two.index(broker)]))
    with WireClient(two[0].modern_port or 0) as one, WireClient(two[1].modern_port or 0) as other:
        clients = (one, other)

        def leaders(client: WireClient) -> list[int]:
            return [p.leader for p in metadata(client, "t").topics[0].partitions]

        until(lambda: all(sorted(leaders(client)) == [1, 1, 2, 2] for client in clients), "both see four partitions")
        assert leaders(one) == leaders(other)
        together = leaders(one)
        of_second = together.index(2)
        ports = {(b.id, b.port) for b in metadata(other, "t").brokers}
        assert {(1, two[0].modern_port), (2, two[1].modern_port)} == ports

        body = fetch_body("t", 0, max_wait_ms=30_000)
        body.topics[0].partitions[0].index = of_second
        assert b"from broker 1" in other.ask(ApiKey.FETCH, 11, body).topics[0].partitions[0].records
        assert one.ask(ApiKey.FETCH, 11, body).topics[0].partitions[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER

        def coordinator(client: WireClient, group: str) -> int:
            found: int = client.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key=group, key_type=0)).node
            return found

        groups = [f"group-{n}" for n in range(20)]
        named = {group: coordinator(one, group) for group in groups}
        assert {1, 2} == set(named.values())
        until(lambda: named == {group: coordinator(other, group) for group in groups}, "both name the same leaders")
        of_two = next(group for group in groups if named[group] == 2)
        heartbeat = Struct(group=of_two, generation=1, member="m")
        assert one.ask(ApiKey.HEARTBEAT, 3, heartbeat).error == ErrorCode.NOT_COORDINATOR
        assert answers(other, heartbeat)

        two[1].kill()
        until(lambda: coordinator(one, of_two) == 1, "the other broker speaks for the dead one's groups")
        alone = [-1 if leader == 2 else leader for leader in together]
        until(lambda: leaders(one) == alone, "the dead broker's partitions have no leader, and keep their numbers")
        until(lambda: answers(one, heartbeat), "it knows what the dead broker knew")
