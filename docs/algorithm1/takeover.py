"""Measure how long a partition is without an owner: ``python docs/algorithm1/takeover.py [ROUNDS]``.

A real ZooKeeper, one broker, and two consumer processes with a session of three seconds. One leaves in peace, or is
killed with SIGKILL; the time runs until the other owns everything. Says how busy the machine was: on a busy one the
servers and the other member are late, too.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import subprocess
import sys
import time

from consumers import Consumer
from consumers.groups import ZooKeeperGroups
from kafka2011.testing import BrokerProcess
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.session import ZooKeeperSession

SESSION_S = 3.0


def member(connect: str) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Consumer(connect, "g", session_timeout_s=SESSION_S) as consumer:
        try:
            for _ in consumer.create_message_streams("t")[0]:
                pass
        except KeyboardInterrupt:
            pass


def wait_for(groups: ZooKeeperGroups, n_owners: int) -> None:
    """Until all four partitions are owned by ``n_owners`` consumers; gives up after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        owners = [row.owner for row in groups.describe("g") or [] if row.owner]
        if len(owners) == 4 and len(set(owners)) == n_owners:
            return
        time.sleep(0.005)
    raise SystemExit("the group did not settle within a minute")


def main(rounds: int) -> None:
    options = {"num.partitions": 4, "log.flush.interval": 1}
    with EmbeddedZooKeeper() as zookeeper, ZooKeeperSession(zookeeper.connect) as session:
        broker = BrokerProcess(options=options | {"zk.connect": zookeeper.connect}).start()
        produce = [sys.executable, "-m", "kafka2011", "produce", "t", "-b", broker.address]
        subprocess.run(produce, input=b"x\n", check=True)
        groups = ZooKeeperGroups(session)
        for what, number in (("clean leave", signal.SIGTERM), ("kill -9", signal.SIGKILL)):
            times = sorted(takeover(zookeeper.connect, groups, number) for _ in range(rounds))
            p95 = times[math.ceil(0.95 * rounds) - 1]
            print(
                f"{what:<12} median {statistics.median(times):.2f} s, p95 {p95:.2f} s, worst {times[-1]:.2f} s "
                f"of {rounds}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
                flush=True,
            )
        broker.stop()


def takeover(connect: str, groups: ZooKeeperGroups, number: signal.Signals) -> float:
    """Seconds from the signal to one of two members until the other owns everything."""
    members = [subprocess.Popen([sys.executable, __file__, "member", connect]) for _ in range(2)]
    wait_for(groups, 2)
    started = time.monotonic()
    os.kill(members[0].pid, number)
    wait_for(groups, 1)
    taken = time.monotonic() - started
    for one in members:
        one.terminate()
        one.wait(30)
    return taken


if __name__ == "__main__":
    if sys.argv[1:2] == ["member"]:
        member(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
