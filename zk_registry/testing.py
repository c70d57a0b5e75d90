"""What a test against real ZooKeeper needs, whatever runs the test.

    with EmbeddedZooKeeper() as zookeeper:
        connect = fresh_chroot(zookeeper.connect)      # "127.0.0.1:23456/t-0f3c…": an empty tree of one's own
        expire(connect, session_id, password)          # that session is over, at once
"""

from __future__ import annotations

import uuid

from kazoo.client import KazooClient


def fresh_chroot(connect: str) -> str:
    """Create an empty node and return the connect string that has it as root."""
    hosts, slash, base = connect.partition("/")
    chroot = f"{slash}{base}".rstrip("/") + f"/t-{uuid.uuid4().hex[:12]}"
    client = KazooClient(hosts, timeout=10.0)
    client.start(timeout=60)
    try:
        client.create(chroot, makepath=True)
    finally:
        client.stop()
        client.close()
    return hosts + chroot


def expire(connect: str, session_id: int, password: bytes) -> None:
    """End someone's session as ZooKeeper itself would: take it over under its own id, and close it.

    When this returns, the session's ephemerals are gone; its owner notices within a heartbeat.
    """
    clone = KazooClient(connect.partition("/")[0], client_id=(session_id, password), timeout=10.0)
    clone.start(timeout=60)
    clone.stop()
    clone.close()
