"""The tests of lab 6 that students see. They run in the grader's process: the simulator calls your consumers."""

from __future__ import annotations

from collections import Counter

from classroom.labs.lab import Bench, Tests, check, expect
from classroom.labs.lab6.arena import judged, plain
from consumers.sim.scenario import Fault

SEEN = Tests(seen=True)


@SEEN.add(
    points=8,
    limit_s=30.0,
    hint="Create your id node, claim every partition, Start them at offset 0, then Wait in a loop.",
)
def one_consumer_alone(bench: Bench) -> None:
    """A consumer that is alone reads all six partitions, and every message of them."""
    verdict = judged(bench, plain(1, 6))
    expect(len({lane.partition for lane in verdict.lanes}), 6, "the number of partitions read by one consumer alone")


@SEEN.add(
    points=12,
    limit_s=30.0,
    hint="Sort partitions and consumers, find your place j. Which partitions are j's if 9 do not divide?",
)
def three_consumers_share(bench: Bench) -> None:
    """Three consumers that start at nearly the same time come to rest with three partitions each."""
    scenario = plain(3, 9)
    verdict = judged(bench, scenario, one_reader=True)
    last = Counter(lane.member for lane in verdict.lanes if lane.end >= scenario.duration_s - 1)
    expect(sorted(last.values()), [3, 3, 3], "partitions of each consumer at the end")


@SEEN.add(points=12, limit_s=30.0, hint="Stop, store, release, in this order, before you read the registries again.")
def consumers_come_and_leave(bench: Bench) -> None:
    """A third consumer joins, another leaves: nobody is read by two, and nothing is delivered twice or not at all."""
    verdict = judged(bench, plain(2, 8, Fault(5.0, "join"), Fault(12.0, "leave", 1)), one_reader=True)
    check(
        verdict.duplicates <= 2 * 8,
        f"{verdict.duplicates} messages were delivered again, though nobody crashed: store before you release",
    )


@SEEN.add(
    points=12,
    limit_s=30.0,
    hint="Watch the ids: when a session ends, its id node goes, and the watch of everybody fires.",
)
def a_consumer_dies(bench: Bench) -> None:
    """One of three consumers is killed: the two others take over its partitions, from the offset it stored last."""
    verdict = judged(bench, plain(3, 9, Fault(8.0, "kill", 1)), one_reader=True)
    check(
        verdict.duplicates < 60,
        f"{verdict.duplicates} messages were delivered again after one crash: store more often",
    )
