"""The named scenarios every protocol is put through.

See docs/group-protocol.md. A scenario fixes who comes and goes, and when; the seed fixes latencies and phases.
"""

from __future__ import annotations

from collections.abc import Callable

from consumers.sim.scenario import QUIET_S, SESSION_S, Fault, Scenario

START_S = 5.0
"""By then the first members have come to rest, under any protocol."""


def _scenario(seed: int, faults: list[Fault], *, n_consumers: int, n_partitions: int) -> Scenario:
    last = max(fault.at + fault.length for fault in faults)
    return Scenario(
        seed,
        "sound",
        n_consumers=n_consumers,
        n_partitions=n_partitions,
        faults=tuple(sorted(faults)),
        duration_s=last + SESSION_S + QUIET_S,
    )


def one_joins(seed: int) -> Scenario:
    """Three members share 12 partitions; a fourth joins."""
    return _scenario(seed, [Fault(START_S, "join")], n_consumers=3, n_partitions=12)


def one_leaves(seed: int) -> Scenario:
    """Four members share 12 partitions; one leaves in peace."""
    return _scenario(seed, [Fault(START_S, "leave")], n_consumers=4, n_partitions=12)


def join_storm(seed: int) -> Scenario:
    """One member has 16 partitions; seven more join, one every 200 ms."""
    faults = [Fault(round(START_S + i / 5, 2), "join") for i in range(7)]
    return _scenario(seed, faults, n_consumers=1, n_partitions=16)


def crash(seed: int) -> Scenario:
    """One of four members is killed."""
    return _scenario(seed, [Fault(START_S, "kill", 1)], n_consumers=4, n_partitions=12)


def pause(seed: int) -> Scenario:
    """One of four members stands still for longer than its session, then goes on as if nothing had happened."""
    return _scenario(seed, [Fault(START_S, "pause", 1, 5.0)], n_consumers=4, n_partitions=12)


def rolling_restart(seed: int) -> Scenario:
    """Four members are restarted one after the other: the eldest leaves, a new one joins a second later."""
    faults = [Fault(START_S + 6 * i, "leave", 0) for i in range(4)]
    faults += [Fault(START_S + 6 * i + 1, "join") for i in range(4)]
    return _scenario(seed, faults, n_consumers=4, n_partitions=12)


def slow_member(seed: int) -> Scenario:
    """One of four members works two seconds between polls while a fifth joins."""
    faults = [Fault(START_S, "slow", 1, 8.0), Fault(START_S + 1, "join")]
    return _scenario(seed, faults, n_consumers=4, n_partitions=12)


SCENARIOS: dict[str, Callable[[int], Scenario]] = {
    "one-joins": one_joins,
    "one-leaves": one_leaves,
    "join-storm": join_storm,
    "crash": crash,
    "pause": pause,
    "rolling-restart": rolling_restart,
    "slow-member": slow_member,
}
