"""Algorithm 1 as a state machine small enough to visit every state: three consumers, all orders of their steps.

A state is the registries plus, for each consumer, where it is in the procedure. From every state each consumer may take
its next step, and as long as changes are left a consumer may join, leave or crash. Breadth first over everything
reachable. Two questions are asked of every state:

    one reader     is some partition being read by two living members?
    complete       when nothing is left to do, does every partition have a reader?

Left out: offsets, lost answers, sessions that expire while their owner still runs (the simulator has those).
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class Consumer(NamedTuple):
    """``pc``: out, rest, released, read, claiming; ``seen``: the members it read; ``reading``: what it pulls."""

    pc: str = "out"
    dirty: bool = False
    seen: frozenset[int] = frozenset()
    got: frozenset[int] = frozenset()
    reading: frozenset[int] = frozenset()


class State(NamedTuple):
    consumers: tuple[Consumer, ...]
    owners: tuple[int | None, ...]
    changes: int


class Edition(NamedTuple):
    """The two rules of ``consumers.algorithm1.editions`` that this model can tell apart."""

    name: str
    stops_first: bool
    whole_n: bool

    def share(self, me: int, seen: frozenset[int], n_partitions: int) -> frozenset[int]:
        """With a whole number N what is left over has no reader; else the first ones take it, as in 0.7."""
        j, (n, left_over) = sorted(seen).index(me), divmod(n_partitions, len(seen))
        if self.whole_n:
            left_over = 0
        return frozenset(range(j * n + min(j, left_over), (j + 1) * n + min(j + 1, left_over)))


EDITIONS = (
    Edition("printed", stops_first=False, whole_n=True),
    Edition("printed, none left", stops_first=False, whole_n=False),
    Edition("sound", stops_first=True, whole_n=False),
)


def successors(state: State, edition: Edition) -> Iterator[tuple[str, State]]:
    """Everything that may happen next."""
    for me, c in enumerate(state.consumers):
        if c.pc == "out":
            if state.changes:
                yield f"{me} joins", _changed(state, me, Consumer("rest", dirty=True))
            continue
        if state.changes:
            # A crash as the registry sees it, or the last step of a leave: the session's nodes go together.
            owners = tuple(None if owner == me else owner for owner in state.owners)
            yield f"{me} is gone", _changed(state._replace(owners=owners), me, Consumer())
        yield from _steps(state, me, c, edition)


def _steps(state: State, me: int, c: Consumer, edition: Edition) -> Iterator[tuple[str, State]]:
    if c.pc == "rest" and c.dirty:
        reading = frozenset[int]() if edition.stops_first else c.reading
        yield f"{me} begins", _put(state, me, c._replace(pc="begun", dirty=False, reading=reading))
    elif c.pc == "begun":
        owners = tuple(None if owner == me else owner for owner in state.owners)
        yield f"{me} releases", _put(state._replace(owners=owners), me, c._replace(pc="released", got=frozenset()))
    elif c.pc == "released":
        members = frozenset(i for i, other in enumerate(state.consumers) if other.pc != "out")
        yield f"{me} reads", _put(state, me, c._replace(pc="claiming", seen=members, dirty=False))
    elif c.pc == "claiming":
        share = edition.share(me, c.seen, len(state.owners))
        left = sorted(share - c.got)
        if not left:
            yield (
                f"{me} starts",
                _put(state, me, c._replace(pc="rest", reading=share, seen=frozenset(), got=frozenset())),
            )
        elif state.owners[left[0]] is None:
            owners = (*state.owners[: left[0]], me, *state.owners[left[0] + 1 :])
            yield f"{me} claims {left[0]}", _put(state._replace(owners=owners), me, c._replace(got=c.got | {left[0]}))
        else:
            yield f"{me} is refused {left[0]}", _put(state, me, c._replace(pc="begun", seen=frozenset()))


def _put(state: State, me: int, consumer: Consumer) -> State:
    consumers = (*state.consumers[:me], consumer, *state.consumers[me + 1 :])
    return state._replace(consumers=consumers)


def _changed(state: State, me: int, consumer: Consumer) -> State:
    """A member came or went: everybody's watch fires."""
    state = _put(state, me, consumer)
    noticed = tuple(c if c.pc == "out" else c._replace(dirty=True) for c in state.consumers)
    return state._replace(consumers=noticed, changes=state.changes - 1)


def wrong(state: State) -> str | None:
    """The promise this state breaks, if any."""
    pulled = [p for c in state.consumers for p in c.reading]
    if len(pulled) != len(set(pulled)):
        return "two members read one partition"
    at_rest = all(c.pc == "out" or (c.pc == "rest" and not c.dirty) for c in state.consumers)
    if at_rest and any(c.pc != "out" for c in state.consumers) and len(pulled) != len(state.owners):
        return "at rest, a partition has no reader"
    return None


def explore(edition: Edition, n_consumers: int, n_partitions: int, changes: int) -> tuple[int, str | None, list[str]]:
    """Visit every state; return how many there are, the first broken promise, and the shortest way there."""
    start = State((Consumer(),) * n_consumers, (None,) * n_partitions, changes)
    came: dict[State, tuple[State, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        broken = wrong(state)
        if broken:
            way = []
            at = state
            while (step := came[at]) is not None:
                at, what = step
                way.append(what)
            return len(came), broken, way[::-1]
        for what, after in successors(state, edition):
            if after not in came:
                came[after] = state, what
                queue.append(after)
    return len(came), None, []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--changes", type=int, default=4)
    options = parser.parse_args()
    for edition in EDITIONS:
        n_states, broken, way = explore(edition, options.consumers, options.partitions, options.changes)
        print(f"{edition.name}: {n_states} states, " + (broken or "every promise kept"))
        for what in way:
            print(f"    {what}")


if __name__ == "__main__":
    main()
