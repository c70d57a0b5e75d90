"""The rules a simulated broker follows: those of today, or one of them as an older Kafka had it.

Each older rule is a bug that real Kafka had; the checker must find a run in which it loses or confuses something.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Today's rules; a mutant changes one."""

    cut_at_high_watermark: bool = False
    """KIP-101: cut the log at the own high watermark instead of asking by epoch."""
    trust_answered_offset: bool = False
    """KIP-279: take the answered offset, whatever epoch was answered, and ask once."""
    forget_own_epoch: bool = False
    """KAFKA-7415: a new leader does not note where its epoch begins."""
    same_leader_same_history: bool = False
    """KAFKA-7164: a new epoch of the same leader asks nothing."""
    join_at_high_watermark: bool = False
    """KAFKA-7128: let a follower into the in-sync set that has not reached the leader's epoch."""
    shrink_before_stored: bool = False
    """Count a replica as gone before its leaving is stored."""
    ignore_joining: bool = False
    """Let the watermark run ahead of a replica that is about to join."""
    no_raise_after_shrink: bool = False
    """KAFKA-13091: do not look at the watermark when a smaller set was stored: producers hang."""
    obey_old_controllers: bool = False
    """KAFKA-1188: accept decisions of a controller that was replaced."""
    write_unfenced: bool = False
    """KAFKA-6082: a controller writes without checking that it still is one."""
    ignore_broker_epoch: bool = False
    """KIP-380: act on a decision meant for this broker's former life."""
    elect_anybody: bool = False
    """Elect the first live replica, in sync or not, and call it in sync."""
    empty_isr: bool = False
    """Take the last member out of the in-sync set."""
    expose_unreplicated: bool = False
    """Let readers see up to the end of the leader's log."""
    retry_with_new_version: bool = False
    """A leader whose write of the in-sync set was refused tries again over the newer decision."""


TODAY = Rules()
MUTANTS = tuple(Rules(**{name: True}) for name in Rules.__dataclass_fields__)


def name_of(rules: Rules) -> str:
    """The rule that is changed."""
    changed = [name for name in Rules.__dataclass_fields__ if getattr(rules, name)]
    return ", ".join(changed) or "today's rules"
