"""All groups of a coordinator, of both kinds, by name.

See docs/group-protocol.md (mixed groups are refused while someone is in them; an empty group changes kind).
"""

from __future__ import annotations

from collections.abc import Iterator

from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.holdings import GROUP_OVERHEAD
from consumers.group_protocol.coordinator.offset_book import OffsetBook
from consumers.group_protocol.coordinator.records import group_key
from consumers.group_protocol.coordinator.replies import Replies, nothing
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.coordinator.timers import Timer
from consumers.group_protocol.kip848.group import ConsumerGroup
from consumers.group_protocol.kip848.records import group_tombstones
from since2011.wire.error_codes import ErrorCode

Group = ClassicGroup | ConsumerGroup


class Groups:
    """Thread: one."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
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
        self._replies.holdings.hold(group.name, "", GROUP_OVERHEAD + len(group.name))

    def discard(self, group: Group) -> None:
        if self._groups.get(group.name) is group:
            del self._groups[group.name]
            self._replies.holdings.drop_group(group.name)
            group.book.close()

    def discard_unborn(self, group: Group) -> bool:
        """Discard a group of which nothing is left, and nothing was ever written."""
        if group.members or group.book.appended or group.book.pending or not isinstance(group, ClassicGroup):
            return False
        if group.pending or group.generation:
            return False
        self._replies.timers.cancel(Timer("join", group.name))
        self.discard(group)
        return True

    def admit(self, group: Group) -> None:
        """Something of ``group`` was accepted: from now on it is there, in place of one of the other kind."""
        before = self._groups.get(group.name)
        if before is group:
            return
        if before is not None:
            was_consumer = isinstance(before, ConsumerGroup)
            erased = group_tombstones(group.name) if was_consumer else [Record(group_key(group.name), None)]
            self._replies.append(group.name, erased, nothing, nothing)
            self._replies.holdings.drop_group(group.name)
        self.put(group)

    def book(self, name: str) -> OffsetBook:
        """The offsets of a group that is being loaded; the group is made if need be."""
        group = self._groups.get(name)
        if group is None:
            group = self._classic(name, None)
            self.put(group)
        return group.book

    def classic_for_join(self, name: str, *, create: bool) -> ClassicGroup | ErrorCode:
        """The classic group to join, or why there is none; a new one is to be admitted."""
        group = self._groups.get(name)
        if isinstance(group, ClassicGroup):
            return group
        if group is not None and group.members:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not create:
            return ErrorCode.UNKNOWN_MEMBER_ID  # rule 2: an id for a group nobody knows
        if group is None and self._is_full:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        made = self._classic(name, group)
        if group is not None:
            made.generation = group.epoch
        return made

    def simple_for_commit(self, name: str) -> ClassicGroup | ErrorCode:
        """A group that exists only to hold offsets, to be admitted."""
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if self._is_full else self._classic(name, None)

    def _classic(self, name: str, before: Group | None) -> ClassicGroup:
        book = OffsetBook(self._replies.holdings) if before is None else before.book
        return ClassicGroup(name, book, state_ms=self._replies.wall_ms())

    def consumer_for_heartbeat(self, name: str, *, create: bool) -> ConsumerGroup | ErrorCode:
        """The KIP-848 group to join or to heartbeat in, or why there is none; a new one is to be admitted."""
        group = self._groups.get(name)
        if isinstance(group, ConsumerGroup):
            return group
        if not create or (group is not None and (group.state is not State.EMPTY or group.pending)):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is None and self._is_full:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        book = OffsetBook(self._replies.holdings) if group is None else group.book
        made = ConsumerGroup(name, book, state_ms=self._replies.wall_ms())
        if group is not None:
            made.epoch = made.target_epoch = group.generation
        return made

    @property
    def _is_full(self) -> bool:
        settings, held = self._replies.settings, self._replies.holdings.total
        return len(self._groups) >= settings.max_groups or held + GROUP_OVERHEAD > settings.max_groups_bytes
