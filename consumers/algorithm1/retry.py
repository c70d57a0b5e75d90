"""Ask again when an answer was lost, instead of beginning anew.

A rebalance is some ten operations and four for each partition. If one lost answer ended the attempt, a member with many
partitions on a bad line would hardly ever finish one. Every operation of Algorithm 1 may be repeated: a read changes
nothing, a claim that is there already is recognised as ours by its session, a delete of our own node finds nothing the
second time, a commit writes the same offsets under the same fence.

Paper: §3.2 (the figure assumes that every answer comes).
"""

from __future__ import annotations

from typing import Any, TypeVar

from consumers.algorithm1.steps import Steps
from zk_registry.operations import ConnectionLoss, RegistryError

T = TypeVar("T")


def ask_again(steps: Steps[T], tries: int) -> Steps[T]:
    """Perform ``steps``, each operation up to ``tries`` times while its answer is lost."""
    answer: Any = None
    error: RegistryError | None = None
    while True:
        try:
            step = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = error = None
        for attempt in range(1, tries + 1):
            try:
                answer = yield step
                break
            except ConnectionLoss as lost:
                if attempt == tries:
                    error = lost
            except RegistryError as refused:
                error = refused
                break
