"""A broker with standbys as processes: kills, an orderly stop, a disk that is gone (issue 27)."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error, TooFewInSync
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set
from since2011.standby.follow import FollowRequest
from tests.integration.since2011.standby.logical_broker import logical_broker
from tests.waiting import until
from zk_registry.operations import Delete
from zk_registry.session import ZooKeeperSession


def _payloads(name: str, n: int = 40) -> list[bytes]:
    return [f"{name}-{i:04}".encode() * 8 for i in range(n)]


def test_what_all_acknowledged_outlives_its_leader_and_a_disk(tmp_path: Path, zk_connect: str) -> None:
    """Issue 27, point 1: across kills of leaders, with a disk deleted between, nothing acknowledged by all is lost and
    no offset changes its meaning; at the end the members' files are equal under ``cmp``."""
    with logical_broker(tmp_path, zk_connect, log_file_size=2000) as broker:
        sent, seen = [], []
        for turn in range(2):
            broker.in_sync("ab")
            leader = broker.leader()
            sent += broker.send("t", _payloads(f"turn{turn}"))
            seen = broker.read("t")
            assert seen == sent

            broker.members[leader].kill()
            if turn:
                broker.wipe(leader)
            broker.next_leader(leader)
            assert broker.read("t")[: len(seen)] == seen
            broker.members[leader].start()

        broker.in_sync("ab")
        sent += broker.send("t", _payloads("last"))
        assert broker.read("t") == sent
        until(lambda: broker.same_files("t"), "the members' files are the same")
        assert len(list((tmp_path / "a").glob("t-0/*.kafka"))) > 3


def test_without_standbys_a_deleted_disk_loses(tmp_path: Path) -> None:
    """The control of the test above (§3.3: "any unconsumed message is lost forever"): a broker alone, its disk deleted,
    and what was acknowledged as flushed is gone."""
    with BrokerProcess(tmp_path / "data", {"produce.acks.enable": True}) as process:
        with BrokerConnection(process.host, process.port) as connection:
            for payload in _payloads("alone"):
                connection.produce_acked("t", 0, encode_set([payload]), AckLevel.FLUSHED)
            assert connection.fetch("t", 0, 0)
        process.kill()
        shutil.rmtree(tmp_path / "data")
        process.restart()
        with BrokerConnection(process.host, process.port) as connection:
            assert connection.offsets("t", 0) == [0]


def test_a_member_on_another_disk_may_not_lead(tmp_path: Path, zk_connect: str) -> None:
    """Issue 27, build 1: only members in sync may run; one whose disk was replaced is not, even if it is the last."""
    with logical_broker(tmp_path, zk_connect, "a") as broker:
        sent = broker.send("t", _payloads("alone"))
        assert broker.read("t") == sent

        broker.members["a"].stop()
        broker.wipe("a")
        process = broker.members["a"]
        process.start()
        until(lambda: "standby" in process.state()["plugins"], "it is there")
        assert broker.registry.brokers() == {}


def test_a_stop_hands_over(tmp_path: Path, zk_connect: str) -> None:
    """Issue 27, point 2: an orderly stop waits for no session to end; another member leads and has everything."""
    with logical_broker(tmp_path, zk_connect) as broker:
        broker.in_sync("ab")
        with BrokerConnection("127.0.0.1", broker.port("a")) as connection:
            for payload in _payloads("unacknowledged"):
                connection.produce("t", 0, encode_set([payload]))
            connection.produce_acked("t", 0, encode_set([b"the last"]), AckLevel.APPENDED)

        assert broker.members["a"].stop() == 0
        assert broker.next_leader("a") == "b"
        assert [payload for _, payload in broker.read("t")] == [*_payloads("unacknowledged"), b"the last"]


def test_a_leader_that_was_away_is_not_heard_of_again(tmp_path: Path, zk_connect: str) -> None:
    """Issue 27, build 7 (the lease): a leader that stands still beyond its session serves nobody when it goes on; it
    gives up what only it had, and follows."""
    with logical_broker(tmp_path, zk_connect) as broker:
        broker.in_sync("ab")
        sent = broker.send("t", _payloads("both"))
        old = BrokerConnection("127.0.0.1", broker.port("a"), timeout_s=60.0)
        assert old.offsets("t", 0)

        broker.members["a"].pause()
        assert broker.next_leader("a") == "b"
        sent += broker.send("t", _payloads("meanwhile"))
        broker.members["a"].resume()

        with pytest.raises(Kafka2011Error):
            old.produce_acked("t", 0, encode_set([b"lost"]), AckLevel.APPENDED)
        broker.in_sync("ab")
        assert broker.read("t") == sent
        until(lambda: broker.same_files("t"), "the members' files are the same")


def test_a_node_deleted_by_hand_ends_a_leadership(tmp_path: Path, zk_connect: str) -> None:
    """A leader whose node is gone is a leader no more: an election follows, in a new epoch, and nothing is lost."""
    with logical_broker(tmp_path, zk_connect) as broker, ZooKeeperSession(zk_connect) as session:
        broker.in_sync("ab")
        sent = broker.send("t", _payloads("before"))
        epoch = broker.state("a")["epoch"]
        session.perform(Delete("/brokers/ids/0"))

        def again() -> bool:
            try:
                states = [broker.state(member) for member in "ab"]
            except OSError:
                return False  # the old leader begins again
            epochs = [state.get("epoch", -1) for state in states]
            return [state["leads"] for state in states].count(True) == 1 and min(epochs) > epoch

        until(again, "one leads in a new epoch, and the other follows")
        broker.in_sync("ab")
        assert broker.read("t") == sent


def test_too_few_members_is_an_error_by_name(tmp_path: Path, zk_connect: str) -> None:
    """Issue 27, build 4: below ``standby.min.insync`` a produce that asks for all is refused by name, and nothing is
    appended."""
    options = {"standby_min_insync": 2, "standby_lag_ms": 500, "produce_acks_timeout_ms": 1000}
    with logical_broker(tmp_path, zk_connect, **options) as broker:
        broker.in_sync("ab")
        sent = broker.send("t", [b"two hold it"])
        broker.members["b"].process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
        with BrokerConnection("127.0.0.1", broker.port("a"), timeout_s=60.0) as connection:

            def refused() -> bool:
                try:
                    connection.produce_acked("other", 0, encode_set([b"who knows"]), AckLevel.ALL)
                except TooFewInSync:
                    return True
                except Kafka2011Error:
                    return False
                return False

            until(refused, "it is refused")
        broker.members["b"].resume()
        assert broker.read("t") == sent


def test_follow_is_refused_without_standbys() -> None:
    """Issue 27, build 2: the followers' request is unknown to a broker that is no member."""
    asked = FollowRequest("b", "disk", 1, 0, 1, ()).encode()
    with BrokerProcess() as broker, BrokerConnection(broker.host, broker.port) as one, pytest.raises(Kafka2011Error):
        one.ask(asked, 1 << 20)
