"""Which brokers hold which partition, as a real Kafka places them: evenly, and over racks where brokers name theirs.

    brokers 0 1 2 3 4, ten partitions, three replicas, start 0, shift 0
    p0 0 1 2   p1 1 2 3   p2 2 3 4   p3 3 4 0   p4 4 0 1      leaders go round
    p5 0 2 3   p6 1 3 4   p7 2 4 0   p8 3 0 1   p9 4 1 2      each round the followers stand one further apart

With racks, brokers are first put in order so that neighbours are of different racks, and a rack gets a second replica
only when each has one. No I/O; chance is an argument.

The paper's answer (§3.2): partitions lie where they were first written, each on one broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from since2011.topics.errors import InvalidAssignment, InvalidPartitions, InvalidReplicationFactor

Assignments = dict[int, tuple[int, ...]]


def place(
    brokers: Mapping[int, str | None],
    n_partitions: int,
    n_replicas: int,
    random: Random,
    *,
    first_partition: int = 0,
    start: int | None = None,
) -> Assignments:
    """Brokers of the partitions from ``first_partition`` on. ``brokers`` maps ids to racks.

    ``start`` is the place in the row of brokers that leads partition 0, where that is not left to chance: a topic that
    grows goes on where it stopped.
    """
    if n_partitions <= 0:
        raise InvalidPartitions(f"{n_partitions} partitions; a topic has at least one")
    if n_replicas <= 0:
        raise InvalidReplicationFactor(f"{n_replicas} replicas; a partition has at least one")
    if n_replicas > len(brokers):
        raise InvalidReplicationFactor(
            f"{n_replicas} replicas, but {len(brokers)} brokers are alive; ask for fewer, or start more brokers"
        )
    racks = {broker: rack for broker, rack in sorted(brokers.items()) if rack is not None}
    if racks and len(racks) < len(brokers):
        lacking = ", ".join(str(broker) for broker in sorted(brokers.keys() - racks.keys()))
        raise InvalidReplicationFactor(f"brokers {lacking} name no rack, others do; set broker.rack on all or on none")
    row = _alternating(racks) if racks else sorted(brokers)
    first = random.randrange(len(row)) if start is None else start
    shift = random.randrange(len(row)) if start is None else start
    placed: Assignments = {}
    for index in range(first_partition, first_partition + n_partitions):
        if index > 0 and index % len(row) == 0:
            shift += 1
        place_of_first = (index + first) % len(row)
        if racks:
            placed[index] = _over_racks(row, racks, place_of_first, shift, n_replicas)
        else:
            others = (row[_follower(place_of_first, shift, k, len(row))] for k in range(n_replicas - 1))
            placed[index] = (row[place_of_first], *others)
    return placed


def replicated(
    assigned: Mapping[int, Sequence[int]], brokers: Mapping[int, str | None], n_replicas: int
) -> Assignments:
    """Partitions with so many replicas each: what there is stays as far as it can, brokers with least get more.

    Replicas on brokers that are gone are replaced. A rack gets a second replica only when each has one.
    """
    if not 1 <= n_replicas <= len(brokers):
        raise InvalidReplicationFactor(f"{n_replicas} replicas, but {len(brokers)} brokers are alive")
    placed: Assignments = {}
    load = dict.fromkeys(sorted(brokers), 0)
    for replicas in assigned.values():
        for broker in replicas:
            if broker in load:
                load[broker] += 1
    for index, replicas in sorted(assigned.items()):
        chosen = [broker for broker in replicas if broker in brokers][:n_replicas]
        while len(chosen) < n_replicas:
            used = [brokers[broker] for broker in chosen]
            others = [broker for broker in load if broker not in chosen]
            chosen.append(min(others, key=lambda broker: (used.count(brokers[broker]), load[broker], broker)))
            load[chosen[-1]] += 1
        placed[index] = tuple(chosen)
    return placed


def _over_racks(
    row: Sequence[int], racks: Mapping[int, str], place_of_first: int, shift: int, n_replicas: int
) -> tuple[int, ...]:
    n_racks = len(set(racks.values()))
    chosen = [row[place_of_first]]
    k = 0
    while len(chosen) < n_replicas:
        broker = row[_follower(place_of_first, shift * n_racks, k, len(row))]
        used = {racks[other] for other in chosen}
        if broker not in chosen and (racks[broker] not in used or len(used) == n_racks):
            chosen.append(broker)
        k += 1
    return tuple(chosen)


def _alternating(racks: Mapping[int, str]) -> list[int]:
    """The brokers in an order in which racks take turns."""
    waiting = {rack: [broker for broker in sorted(racks) if racks[broker] == rack] for rack in set(racks.values())}
    row: list[int] = []
    while len(row) < len(racks):
        row += [waiting[rack].pop(0) for rack in sorted(waiting) if waiting[rack]]
    return row


def _follower(place_of_first: int, shift: int, k: int, n_brokers: int) -> int:
    return (place_of_first + 1 + (shift + k) % (n_brokers - 1)) % n_brokers


def check_assignments(assignments: Mapping[int, Sequence[int]], brokers: Mapping[int, object], first: int = 0) -> None:
    """Refuse partitions placed by hand that are not numbered in a row, or on brokers that are not there."""
    if sorted(assignments) != list(range(first, first + len(assignments))):
        raise InvalidAssignment(f"partitions must be numbered {first}, {first + 1}, … without gaps")
    sizes = {len(replicas) for replicas in assignments.values()}
    if len(sizes) > 1 or 0 in sizes:
        raise InvalidAssignment("every partition needs the same number of replicas, and at least one")
    for index, replicas in assignments.items():
        if len(set(replicas)) < len(replicas):
            raise InvalidAssignment(f"partition {index} names a broker twice: {list(replicas)}")
        unknown = sorted(set(replicas) - brokers.keys())
        if unknown:
            raise InvalidAssignment(f"partition {index} is to lie on {unknown[0]}, and no such broker is alive")
