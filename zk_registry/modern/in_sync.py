"""The in-sync set as its leader writes it: into the state node, if nobody has written since, and a notice of it.

Up to protocol 2.6 a leader writes the set itself. It repeats the epochs of the decision it leads by. Who was refused
looks whether what is stored is what it meant, because an answer may have been lost; if not, somebody else has decided,
and trying again with the newer version would undo that decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from zk_registry.modern import paths, texts
from zk_registry.modern.texts import PartitionState
from zk_registry.operations import BadVersion, Create, Get, Node, NoNode, Pipeline, Registry, RegistryError, Set

NOTICE = "/isr_change_notification/isr_change_"
Partition = tuple[str, int]


class Refusal(Enum):
    """The set was not stored."""

    DECIDED = "somebody else has written: the controller tells what"
    UNKNOWN = "there was no answer: nobody knows whether it is stored"


def write_in_sync_sets(
    registry: Registry, sets: Mapping[Partition, tuple[PartitionState, int]]
) -> dict[Partition, int | Refusal]:
    """Write each state over the version given with it; the new version of the node, or why there is none."""
    if not sets:
        return {}
    writes = tuple(Set(paths.state(*key), state.encode(), version) for key, (state, version) in sets.items())
    try:
        answers: Sequence[Any] = registry.perform(Pipeline(writes))
    except RegistryError:
        return dict.fromkeys(sets, Refusal.UNKNOWN)
    return {
        key: answer if isinstance(answer, int) else _look(registry, key, state, answer)
        for (key, (state, _)), answer in zip(sets.items(), answers, strict=True)
    }


def _look(registry: Registry, key: Partition, meant: PartitionState, refusal: object) -> int | Refusal:
    if isinstance(refusal, NoNode):
        return Refusal.DECIDED
    if not isinstance(refusal, BadVersion):
        return Refusal.UNKNOWN
    try:
        node: Node = registry.perform(Get(paths.state(*key)))
        return node.version if texts.parse_state(node.value) == meant else Refusal.DECIDED
    except (NoNode, ValueError):
        return Refusal.DECIDED
    except RegistryError:
        return Refusal.UNKNOWN


def notify(registry: Registry, partitions: Sequence[Partition]) -> None:
    """Tell the controller whose in-sync sets have changed."""
    rows = [{"topic": topic, "partition": index} for topic, index in partitions]
    value = json.dumps({"version": 1, "partitions": rows}, separators=(",", ":")).encode()
    registry.perform(Create(NOTICE, value, sequential=True))
