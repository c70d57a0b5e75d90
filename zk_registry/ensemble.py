"""Ask the servers themselves whether they can serve: is ZooKeeper down, or are only we cut off?

A client that gets no answer cannot tell. Without a majority the ensemble expires no session, so whoever owned something
still does; when only our line is dead, the others will take over. Each server answers the word ``srvr`` even when it
has no majority. The answer holds for the moment only: a majority that was frozen and wakes up may end sessions at once.

Paper: §3.2 (what happens to ownership when ZooKeeper is away is left open).
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kazoo.hosts import collect_hosts

_ASK_S = 0.5


def servers_of(connect: str) -> list[tuple[str, int]]:
    """Host and port of each server of a connect string."""
    hosts, _ = collect_hosts(connect)
    return [(host.strip(), port) for host, port in hosts]


def has_no_majority(connect: str) -> bool:
    """True if the servers of a connect string say so, or all refuse connections; False if one serves or none speaks."""
    servers = servers_of(connect)
    with ThreadPoolExecutor(len(servers), "zookeeper-ask") as askers:
        answers = list(askers.map(ask, servers))
    if any("Mode:" in answer for answer in answers):
        return False
    return any("not currently serving" in answer for answer in answers) or all(a == "refused" for a in answers)


def ask(server: tuple[str, int]) -> str:
    """What one server says of itself: its answer to ``srvr``, ``refused``, or nothing."""
    heard = b""
    with suppress(OSError):  # silence is an answer too: nothing is known
        try:
            with socket.create_connection(server, timeout=_ASK_S) as line:
                line.sendall(b"srvr")
                while part := line.recv(4096):
                    heard += part
        except ConnectionRefusedError:
            return "refused"
    return heard.decode("utf-8", "replace")
