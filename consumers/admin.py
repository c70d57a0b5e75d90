"""Look at groups and move them: what ``kafka2011 group`` and ``kafka2011 offsets`` do, for programs.

    with Groups("127.0.0.1:2181") as groups:
        for row in groups.describe("billing"):
            print(row.topic, row.partition, row.owner, row.lag)
        groups.seek("billing", "start")

Paper: §3.2 (the offset registry), §3.1 (a consumer can deliberately rewind).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType

from consumers import seek as seeking
from consumers.event_time import DEFAULT_FIELD, event_time
from consumers.groups import GroupRow, PartitionRow, ZooKeeperGroups
from consumers.seek import Move
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.types import BrokerPartition
from zk_registry.offsets import OffsetRegistry
from zk_registry.session import ZooKeeperSession

Offsets = Mapping[str, Mapping[BrokerPartition, int]]
"""Topic to partition to the offset of the next message."""


class GroupHasMembers(Kafka2011Error):
    """A group that is running would overwrite what is stored for it."""


class UnknownGroup(Kafka2011Error):
    """Nobody of this name ever registered or stored an offset."""


class Groups:
    """The Algorithm 1 groups of one ZooKeeper. Thread: one."""

    def __init__(self, zookeeper: str = "127.0.0.1:2181", *, connect_timeout_s: float = 3.0) -> None:
        self._session = ZooKeeperSession(zookeeper, connect_timeout_s=connect_timeout_s)
        self._session.start()
        self._groups = ZooKeeperGroups(self._session)
        self._zookeeper = zookeeper

    def __enter__(self) -> Groups:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session with ZooKeeper."""
        self._session.close()

    def list(self) -> list[GroupRow]:
        """Every group that ever registered or stored an offset."""
        return self._groups.groups()

    def describe(self, group: str) -> Sequence[PartitionRow]:
        """Owner, stored offset, end of the log and lag of each partition."""
        found = self._groups.describe(group)
        if found is None:
            known = ", ".join(row.group for row in self.list()) or "none"
            raise UnknownGroup(f"no group is called {group!r} at {self._zookeeper}; there are: {known}")
        return found

    def members(self, group: str) -> Sequence[str]:
        """Ids of the living members."""
        return self._groups.members(group)

    def plan(
        self,
        group: str,
        to: str | int | datetime,
        *,
        topics: Sequence[str] | None = None,
        scan: bool = False,
        time_field: str = DEFAULT_FIELD,
    ) -> Sequence[Move]:
        """Where ``seek`` would move each partition, and why; nothing is changed.

        ``to``: ``"start"``, ``"end"``, an offset, ``"+N"`` or ``"-N"`` messages, a datetime with its zone, ``"@ms"``.
        A time is found to the segment, or, with ``scan``, to the first message whose ``time_field`` names it.
        """
        time_of = event_time(self._session, time_field) if scan else None
        return seeking.plan(self._groups, group, _where(to), topics, time_of)

    def seek(
        self,
        group: str,
        to: str | int | datetime,
        *,
        topics: Sequence[str] | None = None,
        scan: bool = False,
        time_field: str = DEFAULT_FIELD,
        force: bool = False,
    ) -> Sequence[Move]:
        """Move a group that has no members (or, with ``force``, any) and return the plan that was written."""
        moves = self.plan(group, to, topics=topics, scan=scan, time_field=time_field)
        self.apply(group, moves, force=force)
        return moves

    def apply(self, group: str, moves: Sequence[Move], *, force: bool = False) -> None:
        """Write exactly this plan."""
        self._check_idle(group, force)
        seeking.apply(self._groups, group, moves)

    def offsets(self, group: str) -> Offsets:
        """Every stored offset of a group: what ``kafka2011 offsets export`` writes."""
        stored = OffsetRegistry(self._session, group)
        return {topic: dict(sorted(stored.read_all(topic).items())) for topic in stored.topics()}

    def store(self, group: str, offsets: Offsets, *, force: bool = False) -> None:
        """Store offsets, topic by topic, each topic in one transaction."""
        self._check_idle(group, force)
        for topic, wanted in offsets.items():
            OffsetRegistry(self._session, group).write(topic, dict(wanted))

    def reset(self, group: str, *, force: bool = False) -> None:
        """Forget the stored offsets: the group begins anew, where its ``autooffset.reset`` says."""
        self._check_idle(group, force)
        self._groups.forget(group)

    def remove(self, group: str) -> None:
        """Delete everything of a group that has no members."""
        self._check_idle(group, force=False)
        self._groups.remove(group)

    def _check_idle(self, group: str, force: bool) -> None:
        members = self.members(group)
        if members and not force:
            raise GroupHasMembers(
                f"nothing was changed: group {group} has members ({', '.join(members)}), which would store their own "
                "offsets over it; stop them first"
            )


def _where(to: str | int | datetime) -> str:
    if isinstance(to, datetime):
        if to.tzinfo is None:
            raise ConfigError(f"{to} has no time zone; say which one, for example .replace(tzinfo=timezone.utc)")
        return f"@{round(to.timestamp() * 1000)}"
    text = str(to)
    number = text[1:] if text[:1] in ("+", "-", "@") else text
    if text not in ("start", "end") and not (number.isascii() and number.isdecimal()):
        raise ConfigError(f"{text!r} is none of start, end, an offset, +N, -N, a time")
    return text
