"""Why a group rebalances: what is different between what a member saw before and what it sees now.

A watch only says that something changed under a node. What it was is found by comparing the registries with those of
the last look; what comes and goes between two looks leaves no trace.

Paper: §3.2 ("whenever there is a broker or a consumer change").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consumers.algorithm1.registries import View

JOINED = "it joined"
SESSION_LOST = "its session was lost"
OVER = "a change that is over again"
_MOST = 5


def difference(before: View, now: View) -> list[str]:
    """What changed, in words; topics only as far as both views have them."""
    return [*_members(before, now), *_brokers(before, now), *_topics(before, now)]


def describe(causes: Iterable[str]) -> str:
    """All causes in one line, each once, not too many."""
    words = list(dict.fromkeys(causes)) or [OVER]
    more = len(words) - _MOST
    return "; ".join(words[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _members(before: View, now: View) -> list[str]:
    words = [f"member {name} joined" for name in sorted(now.members.keys() - before.members.keys())]
    words += [f"member {name} is gone" for name in sorted(before.members.keys() - now.members.keys())]
    both = sorted(before.members.keys() & now.members.keys())
    words += [f"member {name} subscribed anew" for name in both if before.members[name] != now.members[name]]
    return words


def _brokers(before: View, now: View) -> list[str]:
    old, new = before.addresses, now.addresses
    words = [f"broker {broker} appeared" for broker in sorted(new.keys() - old.keys())]
    words += [f"broker {broker} vanished" for broker in sorted(old.keys() - new.keys())]
    for broker in sorted(old.keys() & new.keys()):
        if old[broker] != new[broker]:
            words.append(f"broker {broker} moved to {new[broker].host}:{new[broker].port}")
    return words


def _topics(before: View, now: View) -> list[str]:
    """A topic whose partitions came or went on brokers that are there before and after."""
    stayed = before.addresses.keys() & now.addresses.keys()
    words = []
    for topic in sorted(before.partitions.keys() & now.partitions.keys()):
        old, new = before.partitions[topic], now.partitions[topic]
        came = any(p.broker_id in stayed for p in set(new) - set(old))
        went = any(p.broker_id in stayed for p in set(old) - set(new))
        count = f"{len(new)} partition{'s' if len(new) > 1 else ''}"
        if came:
            words.append(f"topic {topic} {'grew to' if old else 'appeared with'} {count}")
        elif went:
            words.append(f"topic {topic} shrank to {count}" if new else f"topic {topic} vanished")
    return words
