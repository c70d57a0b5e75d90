"""``make outage``: ZooKeeper loses its leader, or its majority, for a minute, while a group reads.

    make outage                                              four kinds of outage, three rounds each: 16 minutes
    make outage ARGS="--for 20 --rounds 1 --only majority-paused"

Three real ZooKeeper servers, one broker, a producer at a steady rate, three consumer processes, every session with the
default timeout of 6 s. A server is killed, or frozen with SIGSTOP, and healed after the time given. For each round:

    flow        messages delivered in a second of the outage: the mean and the worst second
    silence     the longest time in which the whole group was given nothing, and that one consumer was given nothing
    commits     the longest time in which one consumer stored nothing, while the servers had a majority
    back        from the moment the ensemble serves again until each consumer has committed (the slowest of them)
    servers     what the servers themselves needed to serve again (starting, election)
    sessions    how many of the broker's and the consumers' sessions went on
    again       messages delivered a second time
    late        messages delivered by a consumer after another had claimed the partition

and the history checker's verdict. The exit code is 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.checker.history import Op
from tests.integration.consumers.conftest import Arena
from tests.waiting import until
from zk_registry import paths
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import Get, RegistryError
from zk_registry.testing import fresh_chroot

KINDS = {
    "leader-killed": (1, False),
    "leader-paused": (1, True),
    "majority-killed": (2, False),
    "majority-paused": (2, True),
}
SESSION_S = 6.0
MEMBERS = ("c1", "c2", "c3")
PARTITIONS = 6
BACK_S = 2.0
"""The promise: commits are back so long after the ensemble is."""


@dataclass(frozen=True)
class Round:
    """What one outage came to."""

    kind: str
    flow_mean: float
    flow_worst: int
    silence_s: float
    silence_one_s: float
    commits_s: float
    back_s: float
    servers_s: float
    sessions_kept: int
    sessions: int
    again: int
    late: int
    verdict: str

    @property
    def broken(self) -> list[str]:
        """The promises that did not hold."""
        wrong = [] if self.verdict == "valid" else [self.verdict]
        if self.flow_worst == 0:
            wrong.append("a second without a message")
        if self.back_s > BACK_S:
            wrong.append(f"commits back after {self.back_s:.1f} s")
        return wrong

    def line(self) -> str:
        return (
            f"{self.kind:<16} {self.flow_mean:>6.0f}/s {self.flow_worst:>5} {self.silence_s:>7.2f} s "
            f"{self.silence_one_s:>7.2f} s {self.commits_s:>7.2f} s {self.back_s:>6.2f} s {self.servers_s:>6.2f} s "
            f"{self.sessions_kept:>6}/{self.sessions} {self.again:>6} {self.late:>5}  "
            + ("; ".join(self.broken) or "held")
        )


HEAD = (
    f"{'outage':<16} {'flow':>8} {'worst':>5} {'silence':>9} {'of one':>9} {'commits':>9} {'back':>8} {'servers':>8} "
    f"{'sessions':>8} {'again':>6} {'late':>5}  promises"
)


class Outage:
    """One round on an ensemble that serves."""

    def __init__(self, ensemble: EmbeddedZooKeeper, directory: Path) -> None:
        self._ensemble = ensemble
        self._arena = Arena(fresh_chroot(ensemble.connect), directory, session_s=SESSION_S)

    def run(self, kind: str, seconds: float) -> Round:
        arena = self._arena
        try:
            arena.broker(0, partitions=PARTITIONS)
            arena.send_everywhere()
            for name in MEMBERS:
                arena.join(name)
            arena.wait_shared(PARTITIONS, len(MEMBERS))
            arena.produce_all_the_time()
            until(lambda: all(arena.polls(name) > 100 for name in MEMBERS), "everybody reads")
            before = self._sessions()
            down = self._down(kind)
            began = time.monotonic()
            for name in MEMBERS:
                arena.fault(kind, name)
            self._strike(kind, down)
            time.sleep(seconds)
            healed = time.monotonic()
            self._heal(kind, down)
            until(self._serves, "the ensemble serves again")
            served = time.monotonic() if kind.startswith("majority") else healed
            until(lambda: self._all_committed_since(served), "everybody commits again")
            arena.stop_producing()
            arena.wait_delivered()
            return self._judge(kind, began, healed, served, before)
        finally:
            arena.close()

    # -- the outage -------------------------------------------------------------------------------------------------

    def _down(self, kind: str) -> list[int]:
        leader = until(
            lambda: [n for n in range(3) if self._ensemble.servers[n].mode() == "leader"], "there is a leader"
        )
        return [(leader[0] + i) % 3 for i in range(KINDS[kind][0])]

    def _strike(self, kind: str, down: list[int]) -> None:
        for server in down:
            self._ensemble.pause(server) if KINDS[kind][1] else self._ensemble.kill(server)

    def _heal(self, kind: str, down: list[int]) -> None:
        for server in down:
            if KINDS[kind][1]:
                self._ensemble.resume(server)
            else:
                self._ensemble.restart(server, wait=False)

    def _serves(self) -> bool:
        return sum(server.mode() in ("leader", "follower") for server in self._ensemble.servers) >= 2

    # -- what came of it --------------------------------------------------------------------------------------------

    def _sessions(self) -> dict[str, int]:
        """The session of the broker and of each consumer."""
        found = {op["proc"]: op["session"] for op in self._arena.ops(list(MEMBERS)) if op["f"] == "session"}

        def broker() -> int:
            try:
                node = self._arena.registry.registry.perform(Get(paths.broker_id(0)))
                return int(node.ephemeral_owner)
            except RegistryError:
                return 0

        return found | {"broker 0": until(broker, "the broker is registered")}

    def _all_committed_since(self, moment: float) -> bool:
        return len(self._first_commits(self._arena.ops(list(MEMBERS)), moment)) == len(MEMBERS)

    def _first_commits(self, ops: list[Op], moment: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for op in ops:
            if op["f"] == "commit" and op["t"] >= moment * 1e9:
                found.setdefault(op["proc"], op["t"] / 1e9)
        return found

    def _judge(self, kind: str, began: float, healed: float, served: float, before: dict[str, int]) -> Round:
        ops = self._arena.ops()
        polls = {name: [op["t"] / 1e9 for op in ops if op["f"] == "poll" and op["proc"] == name] for name in MEMBERS}
        commits = {
            name: [op["t"] / 1e9 for op in ops if op["f"] == "commit" and op["proc"] == name] for name in MEMBERS
        }
        every = sorted(t for times in polls.values() for t in times)
        seconds = Counter(int(t - began) for t in every if began <= t < healed)
        whole = range(int(healed - began))
        after = self._sessions()
        report = self._arena.check(at_rest=True)
        first = self._first_commits(ops, served)
        return Round(
            kind=kind,
            flow_mean=statistics.mean(seconds[i] for i in whole),
            flow_worst=min(seconds[i] for i in whole),
            silence_s=longest(every, began, healed),
            silence_one_s=max(longest(times, began, served + BACK_S) for times in polls.values()),
            commits_s=0.0
            if kind.startswith("majority")
            else max(longest(times, began, healed) for times in commits.values()),
            back_s=max(first.values()) - served,
            servers_s=served - healed,
            sessions_kept=sum(before[who] == after.get(who) for who in before),
            sessions=len(before),
            again=report.legal["dup-delivery"],
            late=late(ops),
            verdict="valid" if report.valid else str(report),
        )


def late(ops: list[Op]) -> int:
    """How many messages were delivered by somebody else than the last to claim their partition."""
    owner: dict[str, str] = {}
    n_messages = 0
    for op in ops:
        if op["f"] == "own":
            owner[op["key"]] = op["proc"]
        elif op["f"] == "poll":
            n_messages += owner[op["key"]] != op["proc"]
    return n_messages


def longest(times: list[float], start: float, end: float) -> float:
    """The longest stretch between ``start`` and ``end`` without one of ``times``."""
    inside = [start, *(t for t in times if start < t < end), end]
    return max(b - a for a, b in itertools.pairwise(inside))


def main() -> int:
    """Run the rounds and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, help="length of each outage in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(KINDS), action="append")
    parser.add_argument("--keep", action="store_true", help="keep the histories")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="kafka2011-outage-"))
    print(f"each outage {options.seconds:g} s, sessions {SESSION_S:g} s\n{HEAD}", flush=True)
    broken = False
    with EmbeddedZooKeeper(servers=3) as ensemble:
        for kind in options.only or KINDS:
            for number in range(options.rounds):
                directory = place / f"{kind}-{number}"
                directory.mkdir()
                done = Outage(ensemble, directory).run(kind, options.seconds)
                print(done.line(), flush=True)
                broken = broken or bool(done.broken)
                until(lambda: all(server.mode() for server in ensemble.servers), "all three serve")
    if broken or options.keep:
        print(f"the histories are in {place}")
    else:
        shutil.rmtree(place)
    return int(broken)


if __name__ == "__main__":
    raise SystemExit(main())
