"""All groups of a coordinator, of both kinds, by name.

Spec: modern-group-protocol §2, §12 (mixed groups are refused while someone is in them; an empty group changes kind).
"""

from __future__ import annotations

from collections.abc import Iterator

from consumers.group_protocol.coordinator.desk import Desk, nothing
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.offset_book import OffsetBook
from consumers.group_protocol.coordinator.records import group_key
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.kip848.records import group_tombstones

Group = ClassicGroup | ConsumerGroup


class Groups:
    """Thread: one."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def get(self, name: str) -> Group | None:
        return self._groups.get(name)

    def classic(self, name: str) -> ClassicGroup | None:
        group = self._groups.get(name)
        return group if isinstance(group, ClassicGroup) else None

    def consumer(self, name: str) -> ConsumerGroup | None:
        group = self._groups.get(name)
        return group if isinstance(group, ConsumerGroup) else None

    def put(self, group: Group) -> None:
        self._groups[group.name] = group

    def discard(self, group: Group) -> None:
        if self._groups.get(group.name) is group:
            del self._groups[group.name]

    def book(self, name: str) -> OffsetBook:
        """The offsets of a group that is being loaded; the group is made if need be."""
        group = self._groups.get(name)
        if group is None:
            group = ClassicGroup(name, OffsetBook(), state_ms=self._desk.wall_ms())
            self.put(group)
        return group.book

    def classic_for_join(self, name: str, *, create: bool) -> ClassicGroup | ErrorCode:
        """The classic group to join, or why there is none."""
        group = self._groups.get(name)
        if isinstance(group, ClassicGroup):
            return group
        if group is not None and group.members:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not create:
            return ErrorCode.UNKNOWN_MEMBER_ID  # rule 2: an id for a group nobody knows
        if group is None and self._is_full:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        made = ClassicGroup(name, group.book if group else OffsetBook(), state_ms=self._desk.wall_ms())
        if group is not None:
            made.generation = group.epoch
            self._desk.append(name, group_tombstones(name), nothing, nothing)
        self.put(made)
        return made

    def simple_for_commit(self, name: str) -> ClassicGroup | ErrorCode:
        """A group that exists only to hold offsets."""
        if self._is_full:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        made = ClassicGroup(name, OffsetBook(), state_ms=self._desk.wall_ms())
        self.put(made)
        return made

    def consumer_for_heartbeat(self, name: str, *, create: bool) -> ConsumerGroup | ErrorCode:
        """The KIP-848 group to join or to heartbeat in, or why there is none."""
        group = self._groups.get(name)
        if isinstance(group, ConsumerGroup):
            return group
        if not create or (group is not None and (group.state is not State.EMPTY or group.pending)):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is None and self._is_full:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        made = ConsumerGroup(name, group.book if group else OffsetBook(), state_ms=self._desk.wall_ms())
        if group is not None:
            made.epoch = made.target_epoch = group.generation
            self._desk.append(name, [Record(group_key(name), None)], nothing, nothing)
        self.put(made)
        return made

    @property
    def _is_full(self) -> bool:
        return len(self._groups) >= self._desk.settings.max_groups
