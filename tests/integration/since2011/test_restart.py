"""What the modern side remembers when its broker stops or dies. See docs/group-protocol.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from tests.integration.since2011.conftest import OPTIONS
from tests.integration.since2011.wire_client import WireClient


def commit(client: WireClient, group: str, offset: int) -> int:
    """Commit for a consumer that is in no group; the error."""
    row = Struct(index=0, offset=offset, metadata="note")
    body = Struct(group=group, member="", topics=[Struct(name="t", partitions=[row])])
    error: int = client.ask(ApiKey.OFFSET_COMMIT, 7, body).topics[0].partitions[0].error
    return error


def committed(client: WireClient, group: str) -> tuple[int, str]:
    """Offset and note."""
    body = Struct(group=group, topics=[Struct(name="t", partitions=[0])], require_stable=True)
    row = client.ask(ApiKey.OFFSET_FETCH, 7, body).topics[0].partitions[0]
    return row.offset, row.metadata


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_groups_offsets_and_topics_survive(tmp_path: Path, end: str) -> None:
    """Every acknowledged commit, the groups, and a topic's number of partitions are there after a restart (§11)."""
    with BrokerProcess(tmp_path / "data", OPTIONS) as broker:
        with WireClient(broker.modern_port or 0) as client:
            made = Struct(name="t", partitions=3, replication=-1, assignments=[], configs=[])
            body = Struct(topics=[made], timeout_ms=1000, validate_only=False)
            assert client.ask(ApiKey.CREATE_TOPICS, 4, body).topics[0].error == 0
            client.produce("t", [b"x"], partition=2)
            for offset in range(50):
                assert commit(client, f"g{offset % 5}", offset) == 0
            assert committed(client, "g0")[0] == 45
        if end == "killed":
            broker.kill()
        else:
            assert broker.stop() == 0
        broker.restart()
        with WireClient(broker.modern_port or 0) as client:
            found = [committed(client, f"g{n}") for n in range(5)]
            groups = client.ask(ApiKey.LIST_GROUPS, 2, Struct()).groups
            topics = client.ask(ApiKey.METADATA, 8, Struct(topics=None, auto_create=False)).topics
            (topic,) = (each for each in topics if not each.internal)
            asked = Struct(topics=[Struct(name="t", partitions=[Struct(index=2, timestamp=-1)])])
            row = client.ask(ApiKey.LIST_OFFSETS, 5, asked).topics[0].partitions[0]

    assert [(45 + n, "note") for n in range(5)] == found
    assert {f"g{n}" for n in range(5)} == {group.group for group in groups}
    assert (topic.name, len(topic.partitions), row.offset) == ("t", 3, 11)
