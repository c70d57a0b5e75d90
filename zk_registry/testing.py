"""What a test against real ZooKeeper needs, whatever runs the test.

    with EmbeddedZooKeeper() as zookeeper:
        connect = fresh_chroot(zookeeper.connect)      # "127.0.0.1:23456/t-0f3c…": an empty tree of one's own
        expire(connect, session_id, password)          # that session is over, at once
"""

from __future__ import annotations

import socket
import struct
import time
import uuid

from kazoo.client import KazooClient

_PATIENCE_S = 60.0


def fresh_chroot(connect: str) -> str:
    """Create an empty node and return the connect string that has it as root."""
    hosts, slash, base = connect.partition("/")
    chroot = f"{slash}{base}".rstrip("/") + f"/t-{uuid.uuid4().hex[:12]}"
    client = KazooClient(hosts, timeout=10.0)
    client.start(timeout=_PATIENCE_S)
    try:
        client.create(chroot, makepath=True)
    finally:
        client.stop()
        client.close()
    return hosts + chroot


def expire(connect: str, session_id: int, password: bytes) -> None:
    """End someone's session as ZooKeeper itself would: take it over under its own id, and close it.

    When this returns, the server has said that the session is over, and its ephemerals are gone. Its owner notices
    within a heartbeat.
    """
    # The owner reconnects at once and takes its session back, perhaps before it is closed: then once more.
    deadline = time.monotonic() + _PATIENCE_S
    servers = connect.partition("/")[0].split(",")
    attempt = 0
    while time.monotonic() < deadline:
        host, _, port = servers[attempt % len(servers)].rpartition(":")
        attempt += 1
        try:
            if _close_session((host, int(port)), session_id, password):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"session {session_id:#x} could not be ended at {connect} within {_PATIENCE_S:.0f} s")


def _close_session(address: tuple[str, int], session_id: int, password: bytes) -> bool:
    """Connect as the session and close it; True if the server says that there is no such session (any more)."""
    connect = struct.pack(">iqiqi", 0, 0, 10_000, session_id, len(password)) + password + b"\x00"
    close_session = struct.pack(">iii", 8, 1, -11)
    with socket.create_connection(address, timeout=5.0) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(connect)) + connect)
        # Length, protocol version, then the granted timeout, which is 0 for a session that is over.
        head = answers.read(12)
        if len(head) < 12:
            return False
        if struct.unpack(">iii", head)[2] <= 0:
            return True
        connection.sendall(close_session)
        answers.read()
        return False
