"""Offsets of one world, carried to the other."""

from __future__ import annotations

from click.testing import CliRunner, Result

from consumers.cli.offsets import offsets
from consumers.group_protocol.member.groups import ModernGroups
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.types import BrokerPartition
from kafka2011.wire import encode_set
from tests.waiting import until
from zk_registry.offsets import OffsetRegistry
from zk_registry.session import ZooKeeperSession


def copy(zk_connect: str, group: str, *arguments: str) -> Result:
    return CliRunner().invoke(offsets, ["copy", group, "-z", zk_connect, *arguments])


def test_offsets_mean_the_same_in_both_worlds(zk_connect: str) -> None:
    """A group's place, stored by Algorithm 1, is where a modern member goes on, and back (§3.2; bytes in both)."""
    modern = {"modern.port": 0, "log.format": "2011"}
    options = {"zk.connect": zk_connect, "num.partitions": 2, "log.flush.interval": 1, **modern}
    session = ZooKeeperSession(zk_connect)
    with BrokerProcess(options=options) as broker:
        session.start()
        with BrokerConnection(broker.host, broker.port) as old:
            old.produce("t", 1, encode_set([b"hello", b"there"]))
        OffsetRegistry(session, "g").write("t", {BrokerPartition(0, 1): 15})
        modern = until(lambda: ModernGroups.open({"zookeeper": zk_connect}), "the modern port is published")

        planned = copy(zk_connect, "g", "--to", "modern")
        assert planned.exit_code == 0, planned.output
        assert modern.offsets("g") == {}

        done = until(
            lambda: (made := copy(zk_connect, "g", "--to", "modern", "--execute")).exit_code == 0 and made,
            "the new topic has its numbers, and the offsets are stored",
        )
        assert "15" in done.output
        assert modern.offsets("g") == {"t": {BrokerPartition(0, 1): 15}}

        modern.store("h", {"t": {BrokerPartition(0, 0): 0, BrokerPartition(0, 1): 30}})
        back = copy(zk_connect, "h", "--to", "zookeeper", "--execute")
        assert back.exit_code == 0, back.output
        assert OffsetRegistry(session, "h").read_all("t") == {BrokerPartition(0, 0): 0, BrokerPartition(0, 1): 30}
        modern.close()
    session.close()
