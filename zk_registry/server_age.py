"""Ask a ZooKeeper server whether it is old enough to be of no use: one from before 3.4 knows no transactions.

Commits, and some more, are one transaction each (``multi``, ZooKeeper 3.4). A server that does not know the request
drops it without a word, and takes the client with it: the next answer is taken for the one that never comes. So each
server is asked first, in a way that every version understands and that no setting forbids:

* 3.4 and later answer the first message of a connection with one byte more, if the client has sent its own ("read
  only", ZOOKEEPER-704). Asked for a session that does not exist, the server says no, with or without that byte, and
  nothing is written anywhere.
* If the byte is missing, a transaction that changes nothing is sent, and a heartbeat behind it. Whoever knows
  transactions answers the transaction first. So a server that only looks old is not taken for one.

A server that gives no answer is not judged; neither is one that speaks TLS, which came later. Paper: §3.2.
"""

from __future__ import annotations

import re
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

from kafka2011.errors import Kafka2011Error
from zk_registry.ensemble import ask, servers_of

_PATIENCE_S = 1.0
_CONNECT = struct.Struct(">iqiqi16s?")
"""Protocol, last transaction seen, timeout, session, its password with the length before it, read only."""
_YOUNG_ANSWER = 37
_MULTI, _CHECK, _PING, _CLOSE = 14, 13, 11, -11
_MULTI_XID, _PING_XID = 1, -2
_VERSION = re.compile(r"Zookeeper version: *(\d+\.\d+\.\d+)")


class ZooKeeperTooOld(Kafka2011Error):
    """A server of the connect string is older than ZooKeeper 3.4."""


def check(connect: str) -> None:
    """Raise ZooKeeperTooOld, naming the server, if one of the connect string is."""
    servers = servers_of(connect)
    with ThreadPoolExecutor(len(servers), "zookeeper-age") as askers:
        for (host, port), is_old in zip(servers, askers.map(_is_old, servers), strict=True):
            if is_old:
                told = _VERSION.search(ask((host, port)))
                version = f"version {told.group(1)}" if told else "older than 3.4"
                raise ZooKeeperTooOld(
                    f"the ZooKeeper at {host}:{port} is {version} and knows no transactions, which commits need; use "
                    "ZooKeeper 3.4 or newer (brokers and consumers of Kafka 0.7 work with it too), or start one with: "
                    "kafka2011 zk start"
                )


def _is_old(server: tuple[str, int]) -> bool:
    """Whether a server is older than 3.4; no answer is no proof."""
    try:
        with socket.create_connection(server, timeout=_PATIENCE_S) as line:
            no_such_session = 1
            if len(_greet(line, no_such_session)) >= _YOUNG_ANSWER:
                return False
        with socket.create_connection(server, timeout=_PATIENCE_S) as line:
            return not _knows_transactions(line)
    except (OSError, struct.error):
        return False


def _greet(line: socket.socket, session: int) -> bytes:
    timeout_ms = 10_000
    return _asked(line, _CONNECT.pack(0, 0, timeout_ms, session, 16, bytes(16), False))


def _knows_transactions(line: socket.socket) -> bool:
    _greet(line, 0)
    end = struct.pack(">i?i", -1, True, -1)
    transaction = struct.pack(">i?ii1si", _CHECK, False, -1, 1, b"/", -1) + end
    line.sendall(_frame(struct.pack(">ii", _MULTI_XID, _MULTI) + transaction))
    (first,) = struct.unpack_from(">i", _asked(line, struct.pack(">ii", _PING_XID, _PING)))
    line.sendall(_frame(struct.pack(">ii", _MULTI_XID + 1, _CLOSE)))
    return bool(first == _MULTI_XID)


def _asked(line: socket.socket, request: bytes) -> bytes:
    """Send one request and read one answer, whole."""
    line.sendall(_frame(request))
    with line.makefile("rb") as answers:
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)


def _frame(request: bytes) -> bytes:
    return struct.pack(">i", len(request)) + request
