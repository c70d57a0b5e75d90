"""The modern groups as the page and ``/state`` show them, in the registries' words.

Partitions are named ``<broker id>-<partition>`` as in §3.2, so that both kinds of group stand on one axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from consumers.group_protocol.coordinator.admin import state_name
from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.groups import Group
from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.subscription import Subscription, decode_assignment
from kafka2011.types import TopicPartition
from since2011.topics.cluster import ClusterView

Named = dict[str, dict[str, Any]]
"""Topic, then broker-partition."""


def describe(groups: Mapping[str, Group], view: ClusterView) -> dict[str, dict[str, Any]]:
    """Every group with its state, members, owners and offsets, ready for JSON."""
    return {name: _describe(group, view) for name, group in groups.items()}


def _describe(group: Group, view: ClusterView) -> dict[str, Any]:
    owners: Named = {}
    for member, held in _holdings(group):
        _put(owners, dict.fromkeys(held, member), view)
    offsets: Named = {}
    _put(offsets, {partition: stored.offset for partition, stored in group.book.durable.items()}, view)
    return {"state": state_name(group), "members": sorted(group.members), "owners": owners, "offsets": offsets}


def _holdings(group: Group) -> list[tuple[str, Iterable[TopicPartition]]]:
    if isinstance(group, ClassicGroup):
        return [(member.id, _held(group, member)) for member in group.members.values()]
    return [(member.id, member.held) for member in group.members.values()]


def _held(group: ClassicGroup, member: Member) -> Iterable[TopicPartition]:
    """What a member reads: its part of a settled generation. While members join, only cooperative ones read on."""
    cooperative = "cooperative" in (group.protocol or "")
    if group.state is not State.STABLE and not cooperative:
        return ()
    try:
        if member.assignment:
            return decode_assignment(member.assignment)
        return Subscription.decode(member.metadata(group.protocol)).owned if cooperative else ()
    except ValueError:
        return ()  # an assignment of another protocol type is the members' own affair


def _put(found: Named, values: Mapping[TopicPartition, Any], view: ClusterView) -> None:
    for partition, value in values.items():
        place = view.locate(partition.topic, partition.partition)
        if place is not None:
            found.setdefault(partition.topic, {})[str(place)] = value
