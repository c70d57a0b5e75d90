"""How much the coordinator keeps of what others sent, and how much is too much.

Whoever can reach the port can name groups, join them and bring subscriptions. All of that stays until a timer or a
leave removes it, so it is counted when it comes and when it goes, and refused beforehand:

    one member too large        42 INVALID_REQUEST: it will not do better next time
    its group has too much      81 GROUP_MAX_SIZE_REACHED
    the broker has too much     15 COORDINATOR_NOT_AVAILABLE: clients come back; what is small is taken for longer

See docs/group-protocol.md (group.max.size), §20 (codes). Real Kafka counts members, not bytes. Thread: one.
"""

from __future__ import annotations

from collections.abc import Iterable

from consumers.group_protocol.coordinator.settings import GroupSettings
from since2011.wire.error_codes import ErrorCode

MAX_NAME = 255
"""Bytes of a group's or member's name; Kafka has a limit for topics and for group.instance.id (249), none for these."""
MAX_INSTANCE = 249
GROUP_OVERHEAD, MEMBER_OVERHEAD, OFFSET_OVERHEAD = 2_048, 512, 700
"""Bytes of one of these beside what its sender chose, roughly, our log's own memory of it included."""
SMALL = 8_192


def is_name(text: str, most: int = MAX_NAME) -> bool:
    """Whether ``text`` can name a group or a member: something, and not too long."""
    return 0 < len(text) <= most and len(text.encode("utf-8", "surrogatepass")) <= most


def member_size(texts: Iterable[str | None], blobs: Iterable[bytes]) -> int:
    """What a member with these costs."""
    return MEMBER_OVERHEAD + sum(len(text or "") for text in texts) + sum(map(len, blobs))


class Holdings:
    """Bytes by group and member."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._groups: dict[str, dict[str, int]] = {}
        self._totals: dict[str, int] = {}
        self.total = 0
        """Of all groups and members."""
        self.offsets = 0
        """Of all committed offsets; kept by their books."""

    def refusal(self, group: str, member: str, size: int) -> ErrorCode:
        """Why ``member`` cannot have ``size``, if so; what it has already is not counted."""
        settings = self._settings
        before = self._groups.get(group, {}).get(member, 0)
        if size - MEMBER_OVERHEAD > settings.max_metadata_size:
            return ErrorCode.INVALID_REQUEST
        if self._totals.get(group, 0) - before + size > settings.max_group_bytes:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        most = settings.max_groups_bytes if size <= SMALL else settings.max_groups_bytes * 3 // 4
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if self.total - before + size > most else ErrorCode.NONE

    def hold(self, group: str, member: str, size: int) -> None:
        """``member`` of ``group`` has this many now; the member "" is the group itself."""
        members = self._groups.setdefault(group, {})
        more = size - members.get(member, 0)
        members[member] = size
        self._totals[group] = self._totals.get(group, 0) + more
        self.total += more

    def drop(self, group: str, member: str) -> None:
        """``member`` is gone."""
        size = self._groups.get(group, {}).pop(member, 0)
        if size:
            self._totals[group] -= size
            self.total -= size

    def drop_group(self, group: str) -> None:
        """The group is gone with all its members."""
        self._groups.pop(group, None)
        self.total -= self._totals.pop(group, 0)
