"""Store offsets so that only a living member can: all changed ones in one fenced transaction.

The stored offset is that of the next message to read. The fence is a check, in the same transaction, of the member's
own id node, an ephemeral of the very session that claimed the partitions: a member that was paused past its session
finds the node gone and its commit refused as a whole, whatever it still believes.

Paper: §3.2 ("the offset registry"), §3.3 (at least once).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from consumers.algorithm1.steps import Owned, Positions, Steps
from kafka2011.errors import Kafka2011Error
from kafka2011.failpoints import fail_point
from zk_registry import paths
from zk_registry.operations import Check, Create, Exists, Multi, NodeExists, NoNode, Set

if TYPE_CHECKING:
    from consumers.algorithm1.steps import Step

_ROUNDS = 5
"""How often the set of existing offset nodes may change under a commit before it is left for the next one."""


class Fenced(Kafka2011Error):
    """A commit by a consumer that is no longer a member of its group; its partitions are read by others."""


class Offsets:
    """What one member knows about the offset nodes of its group. Thread: worker."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._stored: dict[Owned, int | None] = {}

    def learned(self, owned: Owned, offset: int | None, *, exists: bool) -> None:
        """Note what was read when a partition was claimed."""
        if exists:
            self._stored[owned] = offset
        else:
            self._stored.pop(owned, None)

    def stored(self, owned: Owned) -> int | None:
        """The offset last known to be in the registry."""
        return self._stored.get(owned)

    def changed(self, positions: Positions) -> dict[Owned, int]:
        """Those of ``positions`` that the registry does not hold yet."""
        return {owned: offset for owned, offset in positions.items() if self._stored.get(owned) != offset}

    def commit(self, positions: Positions, fence: str | None) -> Steps[dict[Owned, int]]:
        """Write what changed; return what was written.

        Raises Fenced if the node ``fence`` is gone, a RegistryError if the registry did not confirm: then the
        commit may or may not have happened, and doing it again does no harm.
        """
        changed = self.changed(positions)
        if not changed:
            return changed
        for _ in range(_ROUNDS):
            fail_point("consumer.commit.before")
            try:
                yield self._transaction(changed, fence)
            except (NoNode, NodeExists) as error:
                if fence is not None and (yield Exists(fence)) is None:
                    raise Fenced(
                        f"the commit of {len(changed)} offsets of group {self._group} was refused: {fence} is gone, "
                        "this consumer is no longer a member; its messages since the last commit are delivered again"
                    ) from error
                yield from self._look_again(changed)
                continue
            fail_point("consumer.commit.after")
            self._stored.update(changed)
            return changed
        return {}

    def _transaction(self, changed: Mapping[Owned, int], fence: str | None) -> Step:
        checks = (Check(fence),) if fence is not None else ()
        writes = (
            Set(self._path(owned), b"%d" % offset)
            if owned in self._stored
            else Create(self._path(owned), b"%d" % offset)
            for owned, offset in changed.items()
        )
        return Multi((*checks, *writes))

    def _look_again(self, changed: Mapping[Owned, int]) -> Steps[None]:
        """Find out which offset nodes exist, and make their parents."""
        for topic in sorted({owned.topic for owned in changed}):
            try:
                yield Create(paths.offsets(self._group, topic), make_parents=True)
            except NodeExists:
                pass  # the usual case
        for owned in changed:
            if (yield Exists(self._path(owned))) is None:
                self._stored.pop(owned, None)
            else:
                self._stored.setdefault(owned, None)

    def _path(self, owned: Owned) -> str:
        return paths.offset(self._group, owned.topic, owned.partition)
