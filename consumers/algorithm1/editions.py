"""The three editions of Algorithm 1: one procedure, a few small rules.

``printed`` is the figure, ``shipped`` is Kafka 0.7, ``sound`` is the default. The first two exist to be watched failing
(``kafka2011 sim table``); each rule below is one of the differences, and says what goes wrong without it.

Paper: §3.2, Algorithm 1 and the paragraph after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from consumers.algorithm1 import assign


def wait_a_bit(attempt: int, random: Random) -> float:
    """The same two seconds for everybody: those who collided collide again."""
    return 2.0


def spread_out(attempt: int, random: Random) -> float:
    """0.5 to 1.5 times 50 ms, 100 ms, 200 ms ... up to 2 s: colliding members come apart."""
    return min(2.0, 0.05 * 2.0 ** min(attempt, 10)) * random.uniform(0.5, 1.5)


@dataclass(frozen=True, slots=True)
class Edition:
    """How one edition differs. Every field is one rule."""

    name: str
    share: assign.Rule
    """Which partitions are mine. `sound` shares as 0.7 does, so that both may be in one group."""
    topic_by_topic: bool
    """Release, read and claim inside the loop over topics, as the figure has it; else all topics at once."""
    reads_first: bool
    """Read the registries before letting go: the decision is older than the claims it leads to."""
    looks_first: bool
    """Let go of nothing while the registries still give us exactly what we own."""
    stops_first: bool
    """Stop delivery and commit before the owner node goes; otherwise two members read one partition for a while."""
    only_mine: bool
    """Release only what this session owns; an unconditional delete may hit the next owner's node."""
    intent_first: bool
    """Note a claim before making it, so that a claim whose answer was lost is released too."""
    passes_by: bool
    """Leave out a partition whose owner node is nobody's in the group; otherwise one such node stops all the others."""
    guards: bool
    """Watch our own owner nodes: one that somebody deletes is noticed, and the partition not read by two."""
    fenced: bool
    """Commit only while this session's own id node exists; otherwise a member back from the dead moves offsets."""
    remembers: bool
    """Go on where the application is, if the registry knows of nobody who read further; else from the last commit."""
    asks: int
    """How often an operation is tried whose answer was lost, before the whole attempt counts as failed."""
    tries: int | None
    """Attempts before giving up; None = never gives up."""
    back_off: Callable[[int, Random], float]
    """Seconds to wait after a failed attempt."""

    def attempts(self) -> Iterator[int]:
        """0, 1, 2 ... as long as this edition keeps trying."""
        return iter(range(self.tries)) if self.tries is not None else count()


PRINTED = Edition(
    name="printed",
    share=assign.printed,
    topic_by_topic=True,
    reads_first=False,
    looks_first=False,
    stops_first=False,
    only_mine=False,
    intent_first=False,
    passes_by=False,
    guards=False,
    fenced=False,
    remembers=False,
    asks=1,
    tries=None,
    back_off=wait_a_bit,
)
SHIPPED = Edition(
    name="shipped",
    share=assign.shipped,
    topic_by_topic=False,
    reads_first=True,
    looks_first=False,
    stops_first=True,
    only_mine=False,
    intent_first=False,
    passes_by=False,
    guards=False,
    fenced=False,
    remembers=False,
    asks=1,
    tries=4,
    back_off=wait_a_bit,
)
SOUND = Edition(
    name="sound",
    share=assign.shipped,
    topic_by_topic=False,
    reads_first=False,
    looks_first=True,
    stops_first=True,
    only_mine=True,
    intent_first=True,
    passes_by=True,
    guards=True,
    fenced=True,
    remembers=True,
    asks=3,
    tries=None,
    back_off=spread_out,
)
EDITIONS = {edition.name: edition for edition in (PRINTED, SHIPPED, SOUND)}
