"""Who leads next: the five ways to elect a leader, as functions of what is stored and who is alive. No I/O.

Candidates are tried in the order of assignment, never in the order of the in-sync set, which means nothing. "Alive"
leaves out brokers that are shutting down and replicas on failed disks. None: nobody may lead; the partition keeps its
state, and so remembers who may lead when they come back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from zk_registry.modern.texts import NO_LEADER


class Elected(NamedTuple):
    """A new leader with its in-sync set."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False
    """Taken from outside the in-sync set: what only the others had is lost."""


def offline(
    assignment: Sequence[int], isr: Collection[int], alive: Collection[int], *, unclean: bool = False
) -> Elected | None:
    """The leader is gone: the first live replica in sync; if ``unclean`` allows it, else any live one."""
    for replica in assignment:
        if replica in alive and replica in isr:
            return Elected(replica, tuple(one for one in isr if one in alive))
    if unclean:
        for replica in assignment:
            if replica in alive:
                return Elected(replica, (replica,), unclean=True)
    return None


def reassigned(target: Sequence[int], isr: Collection[int], alive: Collection[int]) -> Elected | None:
    """The assignment has changed: the first of the new replicas that is alive and in sync."""
    for replica in target:
        if replica in alive and replica in isr:
            return Elected(replica, tuple(isr))
    return None


def preferred(assignment: Sequence[int], isr: Collection[int], alive: Collection[int]) -> Elected | None:
    """Back to the first of the assignment, if it is alive and in sync."""
    fit = [head for head in assignment[:1] if head in alive and head in isr]
    return Elected(fit[0], tuple(isr)) if fit else None


def controlled_shutdown(
    assignment: Sequence[int], isr: Collection[int], alive: Collection[int], shutting_down: Collection[int]
) -> Elected | None:
    """A broker is about to stop: the first in sync that stays; those that stop leave the in-sync set."""
    staying = tuple(one for one in isr if one not in shutting_down)
    for replica in assignment:
        if replica in staying and replica in alive:
            return Elected(replica, staying)
    return None


def created(assignment: Sequence[int], alive: Collection[int]) -> Elected | None:
    """A new partition: every live replica is in sync, for there is nothing yet."""
    isr = tuple(one for one in assignment if one in alive)
    return Elected(isr[0], isr) if isr else None


def settled(
    replicas: Sequence[int],
    leader: int,
    isr: Sequence[int],
    *,
    present: Collection[int],
    alive: Collection[int],
    unclean: bool = False,
) -> Elected | None:
    """What must change now that these replicas are there; None: what was decided stands.

    Whoever is gone leaves the in-sync set, and if it led, another leads. Where nobody can, the in-sync set stays as it
    is: it remembers who may lead.
    """
    if leader in present:
        staying = tuple(one for one in isr if one in present)
        return None if staying == tuple(isr) else Elected(leader, staying)
    elected = offline(replicas, isr, alive, unclean=unclean)
    if elected is not None:
        return elected
    left = tuple(one for one in isr if one in present) or tuple(isr)
    return None if leader == NO_LEADER and left == tuple(isr) else Elected(NO_LEADER, left)


def without(isr: Sequence[int], leader: int, replica: int) -> tuple[int, tuple[int, ...]]:
    """Leader and in-sync set when ``replica`` has gone offline; the last member is never taken out."""
    left = tuple(one for one in isr if one != replica)
    return (NO_LEADER if leader == replica else leader), left or tuple(isr)
