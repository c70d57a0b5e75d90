"""samsa, a Python client of 2012, and ours in one ZooKeeper: the same brokers, topics, messages and offsets."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.types import BrokerPartition
from kafka2011.wire import encode_set
from tests.interop.python2 import python2_with
from tests.waiting import until
from zk_registry.brokers import BrokerRegistry
from zk_registry.consumers import ConsumerRegistry, Subscription
from zk_registry.offsets import OffsetRegistry
from zk_registry.owners import OwnerRegistry
from zk_registry.session import ZooKeeperSession

SCRIPT = Path(__file__).parent / "samsa_client.py2"
PARTITIONS = [BrokerPartition(4, 0), BrokerPartition(4, 1)]


def test_samsa_and_we_see_one_cluster(zk_connect: str) -> None:
    """An old client finds our broker and topic, reads ours and its own messages, and leaves offsets we read (§3.2)."""
    interpreter, environment = python2_with("samsa", "samsa==0.3.11", "kazoo==2.8.0")
    options = {"zk.connect": zk_connect, "brokerid": 4, "num.partitions": 2, "log.flush.interval": 1}
    with BrokerProcess(options=options) as broker, ZooKeeperSession(zk_connect, timeout_s=30) as session:
        with BrokerConnection(broker.host, broker.port) as connection:
            for partition in (0, 1):
                connection.produce("clicks", partition, encode_set([b"ours-%d" % partition]))
                until(lambda n=partition: connection.offsets("clicks", n) != [0], "our message can be read")
        until(lambda: BrokerRegistry(session).partitions("clicks") == PARTITIONS, "the topic is announced")

        command = [interpreter, SCRIPT, zk_connect, "clicks", "old", "7"]
        with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True, env=environment) as samsa:
            overdue = threading.Timer(120, samsa.kill)
            overdue.start()
            try:
                assert samsa.stdin is not None and samsa.stdout is not None and samsa.stderr is not None
                seen = json.loads(samsa.stdout.readline() or samsa.stderr.read())
                assert seen == {"brokers": [[4, broker.host, broker.port]], "partitions": [[4, 0], [4, 1]]}
                read = json.loads(samsa.stdout.readline() or samsa.stderr.read())
                assert sorted(read["messages"]) == ["ours-0", "ours-1", *(f"samsa-{n}" for n in range(5))]

                members = ConsumerRegistry(session, "old").members()
                assert members == {read["id"]: Subscription.fixed({"clicks": 1})}
                assert OwnerRegistry(session, "old").owners("clicks") == dict.fromkeys(PARTITIONS, read["id"])
                samsa.stdin.write("enough\n")
                samsa.stdin.flush()
                assert samsa.wait(60) == 0
            finally:
                overdue.cancel()
                samsa.kill()

        with BrokerConnection(broker.host, broker.port) as connection:
            ends = {p: connection.offsets("clicks", p.partition)[0] for p in PARTITIONS}
        assert OffsetRegistry(session, "old").read_all("clicks") == ends
