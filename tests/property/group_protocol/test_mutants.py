"""Rules taken out one at a time: the observer must notice each.

If one of these survives, the property tests prove less than they claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from consumers.group_protocol.assignors.cooperative import CooperativeSticky
from consumers.group_protocol.assignors.sticky import Sticky
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.membership import Membership
from consumers.group_protocol.coordinator.offsets import Offsets
from consumers.group_protocol.coordinator.rebalance import Rebalance
from consumers.group_protocol.coordinator.results import HeartbeatResult
from consumers.group_protocol.kip848 import heartbeat as kip848
from consumers.group_protocol.kip848.group import ConsumerGroup, MemberState, Standing
from consumers.group_protocol.kip848.heartbeat import Heartbeats
from consumers.sim.scenario import Fault, Scenario
from since2011.wire.error_codes import ErrorCode
from tests.property.group_protocol.observer import Objection, watch

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = 25


def replace(owner: object, name: str, rule: Any) -> Patch:
    return lambda patch: patch.setattr(owner, name, rule)


def _any_commit(_self: Offsets, _group: object, _request: object) -> ErrorCode:
    return ErrorCode.NONE


def _same_generation(self: Rebalance, group: ClassicGroup) -> None:
    group.generation -= 1
    original_complete_join(self, group)


original_complete_join = Rebalance._complete_join


def _everyone_gets_the_leaders_share(self: Rebalance, group: ClassicGroup, shares: dict[str, bytes]) -> None:
    share = shares.get(group.leader or "", b"")
    original_complete_sync(self, group, dict.fromkeys(group.members, share))


original_complete_sync = Rebalance.complete_sync


def _calm_heartbeat(self: Membership, token: object, request: Any) -> None:
    group, error = self._find(request.group, request.member, request.instance, request.generation)
    if group is not None:
        self._rebalance.restart_session(group, group.members[request.member])
    self._replies.answer(token, HeartbeatResult(error))


def _impatient(self: Rebalance, group: ClassicGroup) -> None:
    if group.state is State.PREPARING and group.n_joining:
        self._complete_join(group)


def _trusting_reconcile(group: ConsumerGroup, member: Any, _owned: object) -> Standing:
    target = group.target.get(member.id, frozenset())
    free = target - group.held_by_others(member, target)
    return Standing(MemberState.STABLE, group.target_epoch, free)


def _not_checking(*_args: object) -> None:
    return None


MUTANTS: dict[str, tuple[str, bool, Patch]] = {
    "commits are not fenced": ("eager", False, replace(Offsets, "_refusal", _any_commit)),
    "the generation is not raised": ("eager", False, replace(Rebalance, "_complete_join", _same_generation)),
    "everyone gets the leader's share": (
        "eager",
        True,
        replace(Rebalance, "complete_sync", _everyone_gets_the_leaders_share),
    ),
    "heartbeats do not tell of a rebalance": ("eager", True, replace(Membership, "heartbeat", _calm_heartbeat)),
    "sessions never end": ("eager", False, replace(Rebalance, "session_expired", _not_checking)),
    "leaving changes nothing": ("cooperative", True, replace(Rebalance, "after_removal", _not_checking)),
    "the join phase does not wait": ("eager", True, replace(Rebalance, "maybe_complete_join", _impatient)),
    "the join phase never ends": ("eager", True, replace(Rebalance, "join_deadline", _not_checking)),
    "cooperative withholds nothing": ("cooperative", True, replace(CooperativeSticky, "assign", Sticky.assign)),
    "given before let go": ("kip-848", True, replace(ConsumerGroup, "held_by_others", lambda *_: frozenset())),
    "revocations need no acknowledgement": ("kip-848", True, replace(kip848, "reconcile", _trusting_reconcile)),
    "epochs are not checked at commit": ("kip-848", False, replace(Offsets, "_refusal", _any_commit)),
    "a silent consumer is never fenced": ("kip-848", False, replace(Heartbeats, "expired", _not_checking)),
    "a newcomer changes no target": ("kip-848", True, replace(Heartbeats, "_is_new_wish", lambda *_: False)),
}


def pausing(seed: int) -> Scenario:
    """Members stand still beyond their session and come back: the case fencing is for."""
    faults = tuple(Fault(4.0 + 7 * i, kind, i, 3.5) for i, kind in enumerate(("pause", "cut", "pause")))
    faults += (Fault(26.0, "kill", 1),)
    return Scenario(seed, "", n_consumers=3, n_partitions=6, faults=faults, duration_s=60.0)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule of docs/group-protocol.md taken out breaks a promise the observer checks."""
    protocol, clean, patch = MUTANTS[name]
    patch(monkeypatch)
    for seed in range(SEEDS):
        scenario = Scenario.from_seed(seed, kinds=("join", "leave")) if clean else pausing(seed)
        try:
            watch(scenario, protocol, clean=clean)
        except (Objection, KeyError, StopIteration):  # broken promise, or the machine's own books no longer agree
            return
    pytest.fail(f"nobody noticed: {name}")


@pytest.mark.parametrize("protocol", ["eager", "cooperative", "kip-848"])
def test_with_all_rules_in_place_nobody_objects(protocol: str) -> None:
    """The same scenarios pass unmutated. See docs/group-protocol.md."""
    for seed in range(6):
        watch(pausing(seed), protocol, clean=False)
