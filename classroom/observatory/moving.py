"""Move a group from the page: first a plan to look at, then exactly that plan.

Paper: §3.1, "a consumer can deliberately rewind back to an old offset and re-consume data".
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from consumers.admin import Groups
from consumers.seek import Move
from kafka2011.errors import Kafka2011Error

PLANS = 20
"""Plans that are remembered until somebody applies them."""


class NoSuchPlan(Kafka2011Error):
    """The plan was forgotten, or never made; nothing was changed."""


class Mover:
    """Plan and apply, each with a connection of its own. Thread: any."""

    def __init__(self, open_groups: Callable[[], Groups]) -> None:
        self._open = open_groups
        self._plans: OrderedDict[str, tuple[str, Sequence[Move]]] = OrderedDict()

    def plan(self, wish: dict[str, Any]) -> dict[str, Any]:
        """``{group, to, topic}`` → the plan with its name; nothing is changed."""
        group, topic = str(wish["group"]), str(wish.get("topic", ""))
        with self._open() as groups:
            members = list(groups.members(group))
            moves = groups.plan(group, _where(str(wish["to"])), topics=[topic] if topic else None)
        name = secrets.token_urlsafe(8)
        self._plans[name] = (group, moves)
        while len(self._plans) > PLANS:
            self._plans.popitem(last=False)
        return {"plan": name, "group": group, "members": members, "moves": [_plain(move) for move in moves]}

    def apply(self, wish: dict[str, Any]) -> dict[str, Any]:
        """``{plan}``: write it, unless the group has members."""
        found = self._plans.get(str(wish["plan"]))
        if found is None:
            raise NoSuchPlan("this plan is no longer known; ask for a new preview")
        group, moves = found
        with self._open() as groups:
            groups.apply(group, moves)
        self._plans.pop(str(wish["plan"]), None)
        return {"said": f"{group} goes on from there in {len(moves)} partition(s)"}


def _where(text: str) -> str | datetime:
    """A time may be written as ``@2026-01-31T12:00``, in this machine's time zone unless it names one."""
    if not text.startswith("@") or text[1:].isdecimal():
        return text
    try:
        return datetime.fromisoformat(text[1:]).astimezone()
    except ValueError as error:
        raise NoSuchPlan(f"{text!r} is not a time; write @2026-01-31T12:00") from error


def _plain(move: Move) -> dict[str, Any]:
    return {
        "topic": move.topic,
        "partition": str(move.partition),
        "old": move.old,
        "new": move.new,
        "why": move.why,
    }
