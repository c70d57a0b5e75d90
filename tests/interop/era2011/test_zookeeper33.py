"""The ZooKeeper that Kafka 0.7 came with, 3.3.4, which knows no transactions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers import Consumer
from kafka2011.testing import BrokerProcess
from tests.interop.era2011 import kafka07
from tests.waiting import until
from zk_registry.ensemble import ask, servers_of
from zk_registry.server_age import ZooKeeperTooOld

SAID = r"the ZooKeeper at {} is version 3\.3\.\d+ and knows no transactions.*3\.4 or newer"


@pytest.fixture
def old_zookeeper(tmp_path: Path) -> Iterator[str]:
    process, address = kafka07.zookeeper(tmp_path)
    try:
        until(lambda: "Mode:" in ask(servers_of(address)[0]), "ZooKeeper 3.3.4 serves")
        yield address
    finally:
        process.close()


def test_broker_consumer_and_command_refuse_it_at_the_start(old_zookeeper: str) -> None:
    """Each ends with one clear sentence: what was found, where, and what to do (Issue 19 A3)."""
    said = SAID.format(old_zookeeper)
    with pytest.raises(RuntimeError, match=said):
        BrokerProcess(options={"zk.connect": old_zookeeper, "modern.port": 0}).start()
    for edition in ("sound", "shipped"):
        with pytest.raises(ZooKeeperTooOld, match=said):
            Consumer(old_zookeeper, "g", edition=edition).create_message_streams("t")
    command = [sys.executable, "-m", "kafka2011", "zk", "tree", "-z", old_zookeeper]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert looked.returncode == 1 and len(looked.stderr.splitlines()) == 1
    assert "3.4 or newer" in looked.stderr and looked.stdout == ""
