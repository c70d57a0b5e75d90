"""Who reads what: lines 5-8 of Algorithm 1 as three small functions.

Each takes the partitions of one topic and the consumer threads subscribed to it, sorts both, and returns one thread's
share. Every member computes its own share from what it read; nobody hands shares out. So all members of a group must
use one rule: two that differ claim what the other counts as its own, and never agree.

| rule | order | share of the j-th of c consumers among p partitions | what is left unread |
|---|---|---|---|
| printed | numeric | j*N up to (j+1)*N, N = p // c | p mod c partitions; all of them when c > p |
| shipped | by text | p // c, the first p mod c threads one more | nothing |
| fraction | numeric | j*p//c up to (j+1)*p//c: the printed formula with N = p/c kept exact | nothing |

``shipped`` is the default: members of Kafka 0.7 know no other. ``fraction`` is for groups without them.

Paper: §3.2, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kafka2011.types import BrokerPartition


@dataclass(frozen=True, slots=True, order=True)
class ThreadId:
    """One stream of one consumer, ``<consumer id>-<index>``: the unit that owns partitions (docs/zookeeper.md)."""

    consumer_id: str
    index: int

    def __str__(self) -> str:
        return f"{self.consumer_id}-{self.index}"


Share = Sequence[BrokerPartition]
Rule = Callable[[Collection[BrokerPartition], Collection[ThreadId], ThreadId], Share]


def printed(partitions: Collection[BrokerPartition], threads: Collection[ThreadId], me: ThreadId) -> Share:
    """The figure with N read as a whole number: what a class finds to be wrong first."""
    ordered, j = sorted(partitions), sorted(threads).index(me)
    n = len(ordered) // len(threads)
    return ordered[j * n : (j + 1) * n]


def shipped(partitions: Collection[BrokerPartition], threads: Collection[ThreadId], me: ThreadId) -> Share:
    """Kafka 0.7: both sorted as text (``0-10`` before ``0-2``), the remainder to the first threads.

    See docs/consumer.md.
    """
    ordered, j = sorted(partitions, key=_as_java_sorts), sorted(threads, key=_as_java_sorts).index(me)
    quotient, remainder = divmod(len(ordered), len(threads))
    start = quotient * j + min(j, remainder)
    return ordered[start : start + quotient + (1 if j < remainder else 0)]


def fraction(partitions: Collection[BrokerPartition], threads: Collection[ThreadId], me: ThreadId) -> Share:
    """The figure with N = p/c as an exact fraction: complete, disjoint, shares differ by at most one."""
    ordered, j = sorted(partitions), sorted(threads).index(me)
    p, c = len(ordered), len(threads)
    return ordered[j * p // c : (j + 1) * p // c]


def _as_java_sorts(name: object) -> bytes:
    """The order of Java's strings, by UTF-16 unit: what 0.7 sorts by, also where a consumer's id is not ASCII."""
    return str(name).encode("utf-16-be", "surrogatepass")


RULES: dict[str, Rule] = {rule.__name__: rule for rule in (shipped, fraction)}
"""What a group may choose to share by."""
