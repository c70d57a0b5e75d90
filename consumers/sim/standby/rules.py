"""The rules simulated members follow: today's, or one of them changed; the checker must find what that breaks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Today's rules; a mutant changes one."""

    elect_any_member: bool = False
    """Whoever comes first leads, in sync or not."""
    no_epochs: bool = False
    """A member says that its log is the leader's, and does not know better."""
    expose_early: bool = False
    """Readers see what the leader has flushed, whoever else has it."""
    half_entries: bool = False
    """A member appends what it is sent, wherever that ends."""
    serve_after_session: bool = False
    """A leader goes on until it hears that its session has ended."""
    any_disk: bool = False
    """The set names members, not disks: one that comes back empty is still in sync."""


TODAY = Rules()
MUTANTS = tuple(Rules(**{name: True}) for name in Rules.__dataclass_fields__)


def name_of(rules: Rules) -> str:
    """The rule that is changed."""
    changed = [name for name in Rules.__dataclass_fields__ if getattr(rules, name)]
    return ", ".join(changed) or "today's rules"
