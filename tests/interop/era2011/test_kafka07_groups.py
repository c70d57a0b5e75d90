"""Consumers of the real Kafka 0.7 and ours in one group, on a real ZooKeeper."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.types import BrokerPartition
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.interop.era2011 import kafka07
from tests.waiting import until

N_PARTITIONS = 15


class MixedGroup:
    """Members of both kinds, and how long each change took to settle."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.old: dict[str, kafka07.Process07] = {}
        self.took: list[tuple[str, float]] = []
        self._began = 0.0

    def join(self, name: str) -> None:
        """A member of 0.7 if its name begins with ``k``, else one of ours."""
        if name.startswith("k"):
            arena = self.arena
            self.old[name] = kafka07.consumer(arena.directory, name, arena.connect, arena.group, TOPIC)
        else:
            self.arena.join(name)
        self._settles(f"{name} joins")

    def kill(self, name: str) -> None:
        self._began = time.monotonic()
        if name in self.old:
            self.old.pop(name).kill()
        else:
            member = self.arena.members.pop(name)
            member.process.kill()
            member.process.wait()
        self._settles(f"{name} is killed")

    def leave(self, name: str) -> None:
        self._began = time.monotonic()
        if name in self.old:
            self.old.pop(name).leave()
        else:
            self.arena.members.pop(name).leave()
        self._settles(f"{name} leaves")

    @property
    def n_members(self) -> int:
        return len(self.old) + len(self.arena.members)

    def _settles(self, what: str) -> None:
        """Wait until each member owns exactly what 0.7's rule gives it, and nothing else is owned."""
        began = self._began or time.monotonic()
        self._began = 0.0
        until(self._is_shared_out, f"{what}: {N_PARTITIONS} partitions are shared by {self.n_members}", 120.0)
        self.took.append((what, time.monotonic() - began))

    def _is_shared_out(self) -> bool:
        members = sorted(self.arena.registry.members(self.arena.group))
        if len(members) != self.n_members:
            return False
        names = sorted(str(BrokerPartition(0, n)) for n in range(N_PARTITIONS))
        quotient, extra = divmod(len(names), len(members))
        expected, start = {}, 0
        for position, member in enumerate(members):
            size = quotient + (1 if position < extra else 0)
            expected |= {BrokerPartition.parse(name): member for name in names[start : start + size]}
            start += size
        return self.arena.owners() == expected


@pytest.fixture
def group(zk_connect: str, tmp_path: Path) -> Iterator[MixedGroup]:
    kafka07.library()
    mixed = MixedGroup(Arena(zk_connect, tmp_path))
    try:
        yield mixed
    finally:
        for process in mixed.old.values():
            process.close()
        mixed.arena.close()


@pytest.mark.timeout(580)
def test_a_group_of_0_7_and_ours_settles_after_every_change(group: MixedGroup) -> None:
    """Fifteen partitions, one to six members of both kinds, joins, leaves and kills of either: after each change every
    partition is owned by exactly one, and in the end every message was delivered (Issue 19 A5)."""
    arena = group.arena
    arena.broker(0, partitions=N_PARTITIONS)
    arena.send_everywhere()
    group.join("c1")
    arena.produce_all_the_time()
    group.join("k1")
    group.join("c2")
    group.join("k2")
    group.kill("k1")
    group.join("c3")
    group.join("k3")
    group.kill("c1")
    group.join("c4")
    group.leave("k2")
    group.join("k4")
    group.leave("c2")
    group.join("c5")
    group.kill("k3")
    group.kill("c3")
    group.join("k5")
    arena.stop_producing()

    def unread() -> set[str]:
        lines = [line for path in arena.directory.glob("k*.out") for line in path.read_text().splitlines()]
        ours = {v for op in arena.ops() if op["f"] == "poll" for _, _, v in op["v"]}
        return arena.sent - ours - {line for line in lines if re.fullmatch(r"p1-\d+", line)}

    until(lambda: not unread(), "every acknowledged message is delivered to one or the other")
    seconds = sorted(took for _, took in group.took)
    median = seconds[len(seconds) // 2]
    print(f"\n{len(seconds)} changes, {len(arena.sent)} messages; settled in {median:.1f} s, worst {seconds[-1]:.1f}")
    print("\n".join(f"  {what:<14} {took:5.1f} s" for what, took in group.took))
    assert len(group.took) >= 14
