"""What a broker promised about groups holds after kill -9."""

from __future__ import annotations

import json

from click.testing import CliRunner

from consumers.cli.group import group as group_command
from consumers.group_protocol.member import CommitNotStored, Consumer, ConsumerRecord
from kafka2011.errors import ConnectionFailed
from kafka2011.testing import BrokerProcess
from since2011.client.connection import ModernConnection
from since2011.wire.codec import ApiKey, Struct
from tests.integration.group_protocol.conftest import N_MESSAGES, fill, new_member
from tests.integration.group_protocol.test_member import Diary, drain
from tests.waiting import until

N_GROUPS = 8


def commit(connection: ModernConnection, group: str, offset: int) -> None:
    row = Struct(name="t", partitions=[Struct(index=0, offset=offset, metadata="")])
    connection.send(ApiKey.OFFSET_COMMIT, 7, Struct(group=group, member="", topics=[row]))


def committed(broker: BrokerProcess, group: str) -> int:
    connection = ModernConnection(broker.host, broker.modern_port or 0, client_id="t")
    rows = [Struct(name="t", partitions=[0])]
    answer = connection.ask(ApiKey.OFFSET_FETCH, 5, Struct(group=group, topics=rows))
    connection.close()
    assert answer.error == 0
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def test_no_acknowledged_commit_is_lost_by_kill_9(own_broker: BrokerProcess) -> None:
    """Killed in the middle of a flood of commits, three times over: what was answered is there.

    See docs/group-protocol.md.
    """
    fill(own_broker, "t")
    acknowledged = dict.fromkeys([f"flood-{n}" for n in range(N_GROUPS)], 0)
    sent = dict(acknowledged)
    for _ in range(3):
        connections = {
            group: ModernConnection(own_broker.host, own_broker.modern_port or 0, client_id="t") for group in sent
        }
        for _ in range(40):
            for group, connection in connections.items():
                sent[group] += 1
                commit(connection, group, sent[group])
            for group, connection in connections.items():
                answer = connection.receive(60.0)
                assert answer is not None and answer.topics[0].partitions[0].error == 0
                acknowledged[group] = sent[group]
        for group, connection in connections.items():
            sent[group] += 1
            commit(connection, group, sent[group])  # under way when the broker dies
        own_broker.kill()
        for connection in connections.values():
            connection.close()
        own_broker.restart()
        for group, offset in acknowledged.items():
            assert offset <= committed(own_broker, group) <= sent[group]
            acknowledged[group] = committed(own_broker, group)


def can_commit(reader: Consumer) -> bool:
    reader.poll(0.05)
    try:
        reader.commit_sync(timeout_s=0.0)
    except (CommitNotStored, ConnectionFailed):
        return False
    return True


def test_groups_go_on_after_a_crash_of_the_broker(own_broker: BrokerProcess) -> None:
    """Members of both kinds keep their partitions over kill -9 and restart; nobody is told to rebalance, and the tools
    see both groups. See docs/group-protocol.md."""
    fill(own_broker, "on")
    diaries = {"classic": Diary(), "consumer": Diary()}
    members = {kind: new_member(own_broker, f"on-{kind}", group_protocol=kind) for kind in diaries}
    seen: list[ConsumerRecord] = []
    for kind, each in members.items():
        each.subscribe(["on"], diaries[kind])
    drain(
        members.values(),
        seen,
        lambda: all(len(each.assignment()) == 4 for each in members.values()) and len(seen) == 2 * 4 * N_MESSAGES,
        "both have all and have read it",
    )
    own_broker.kill()
    own_broker.restart()
    for kind, each in members.items():
        until(lambda each=each: can_commit(each), f"{kind}: commits are taken again")  # type: ignore[misc]
        assert len(each.assignment()) == 4
        assert [what for what, _ in diaries[kind].entries] == ["assigned"]
    at = f"{own_broker.host}:{own_broker.modern_port}"
    listed = CliRunner().invoke(group_command, ["list", "--modern", at, "--json"])
    assert {(row["group"], row["protocol"], row["members"]) for row in json.loads(listed.stdout)} == {
        ("on-classic", "range", 1),
        ("on-consumer", "uniform", 1),
    }
    rows = json.loads(CliRunner().invoke(group_command, ["describe", "on-consumer", "--modern", at, "--json"]).stdout)
    assert [row["lag_bytes"] for row in rows] == [0, 0, 0, 0]
    for each in members.values():
        each.close()
