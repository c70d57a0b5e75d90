"""What transactions promise, looked at when everything has come to rest.

    no aborted read       nothing of a transaction that was aborted is seen by a reader of committed records
    no lost commit        everything of a transaction whose commit was answered is seen
    atomic                of every transaction all records and the offset count, or none
    exactly once          every input is in the output once, zombies or not
    nothing hangs         readers of committed records get to the end
    never taken back      what a reader has seen stays what it was
"""

from __future__ import annotations

from typing import NamedTuple

from consumers.sim.transactions.instance import OUTPUTS
from consumers.sim.transactions.partition import INPUT, OFFSETS, Entry
from consumers.sim.transactions.world import N_INPUTS, World


class Broken(NamedTuple):
    """A promise that was not kept."""

    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


def check(world: World, *, committed: bool = True) -> Broken | None:
    """The first promise that is broken; with ``committed`` False for readers who see everything."""
    if world.broken is not None and committed:
        return Broken("never taken back", world.broken)
    for key, held in world.partitions.items():
        if held.last_stable_offset != len(held.entries):
            return Broken("nothing hangs", f"{key} is stable up to {held.last_stable_offset} of {len(held.entries)}")
    seen = [entry for key in OUTPUTS for entry in world.partitions[key].read(committed=committed)]
    offsets = world.partitions[OFFSETS].read(committed=committed)
    told = {label: outcome for each in world.instances for label, outcome in each.outcomes.items()}
    for label, outcome in told.items():
        broken = _one(world, label, outcome, seen, offsets)
        if broken is not None:
            return broken
    values = sorted(entry.value for entry in seen)
    if values != list(range(N_INPUTS)):
        return Broken("exactly once", f"the output holds {values}")
    found = world.partitions[OFFSETS].book.durable.get(INPUT)
    if found is None or found.offset != N_INPUTS:
        return Broken("exactly once", f"the group is at {found}")
    return None


def _one(world: World, label: str, outcome: bool | None, seen: list[Entry], offsets: list[Entry]) -> Broken | None:
    written = sum(entry.label == label for key in OUTPUTS for entry in world.partitions[key].read(committed=False))
    n_seen = sum(entry.label == label for entry in seen)
    n_offsets = sum(entry.label == label for entry in offsets)
    if outcome is False and (n_seen or n_offsets):
        return Broken("no aborted read", f"{n_seen} records of {label}")
    if outcome is True and (n_seen != written or not n_offsets):
        return Broken("no lost commit", f"{n_seen} of {written} records of {label}")
    if n_seen not in (0, written) or (n_offsets > 0) != (n_seen > 0):
        return Broken("atomic", f"{n_seen} of {written} records of {label} and {n_offsets} offsets")
    return None
