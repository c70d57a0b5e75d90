"""Claim and release owner nodes: the ownership registry is the one arbiter of who reads.

A claim is an ephemeral node that only one member can create. Four things can go wrong, and each has a rule in
``editions``: the answer to a create is lost (intent), the node to delete is already somebody else's (only mine), the
node in the way is our own from a create whose answer was lost (compare the session, not the value), and the node in the
way is nobody's in the group, made by hand or by a stranger, and may stay for ever (passes by).

Paper: §3.2, "the ownership registry"; Algorithm 1 lines 2, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consumers.algorithm1.registries import found
from consumers.algorithm1.steps import Owned, Steps
from consumers.events import ClaimBlocked, Claimed, ClaimRefused, Released
from zk_registry import paths
from zk_registry.operations import (
    Check,
    ConnectionLoss,
    Create,
    Delete,
    DeleteIfMine,
    Exists,
    Multi,
    Node,
    NodeExists,
    NoNode,
    RegistryError,
)

if TYPE_CHECKING:
    from consumers.algorithm1.assign import ThreadId
    from consumers.algorithm1.member import Member


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt did not succeed, and at which node."""

    path: str
    reason: str


def release(member: Member, topics: Collection[str]) -> Steps[None]:
    """Delete the owner nodes noted for ``topics`` (and for topics no longer subscribed)."""
    for owned in sorted(member.claims):
        if owned.topic not in topics and owned.topic in member.topics:
            continue
        path = paths.owner(member.group, owned.topic, owned.partition)
        # Told before it is done: once the node is gone, the next owner may be quicker than our journal.
        member.tell(Released, owned)
        if path in member.guarded:
            member.guarded.discard(path)
            member.let_go.add(path)
        if member.edition.only_mine:
            yield DeleteIfMine(path)
        else:
            try:
                yield Delete(path)
            except NoNode:
                pass  # gone already: with the old session, or deleted by somebody else
        member.claims.discard(owned)


def remove_stale(member: Member) -> Steps[None]:
    """Delete what the last life left behind: a server may call a session over and still keep its nodes for a timeout.

    That happens when a leader is frozen and wakes up: it begins to end sessions, and another leader takes over before
    that is done. Each delete is made together with a check of the old id node: while that exists, the old session does,
    and no stranger can have taken the place of one of its nodes.
    """
    if member.last_life is None or not member.edition.only_mine:
        return
    (old_id, session), member.last_life = member.last_life, None
    grave = paths.consumer_id(member.group, old_id)
    try:
        for path in [*(paths.owner(member.group, o.topic, o.partition) for o in sorted(member.claims)), grave]:
            if (yield Exists(grave)) is None:
                return  # the usual case: it went with its session
            node = yield Exists(path)
            if node is not None and node.ephemeral_owner == session:
                yield Multi((Check(grave), Delete(path)))
    except (NoNode, ConnectionLoss):
        pass  # it went by itself meanwhile, or will


def claim(member: Member, shares: Mapping[Owned, ThreadId], sessions: Collection[int]) -> Steps[Refusal | None]:
    """Set the owner of each partition; stop at the first that is another member's, one of ``sessions``."""
    known, member.blocked = member.blocked, {}
    for owned, thread in shares.items():
        path = paths.owner(member.group, owned.topic, owned.partition)
        if member.edition.intent_first:
            member.claims.add(owned)
        try:
            yield Create(path, str(thread).encode(), ephemeral=True, make_parents=True)
        except NodeExists:
            node = yield from found(path)
            if node is not None and not _is_mine(member, node, thread):
                holder = node.value.decode("utf-8", "replace")
                if member.edition.passes_by and node.ephemeral_owner not in sessions:
                    member.claims.discard(owned)
                    member.blocked[owned] = holder
                    if not (yield from in_the_way(member, owned)):
                        return Refusal(path, "gone as soon as it was looked at")
                    if known.get(owned) != holder:
                        _tell_blocked(member, owned, node)
                    continue
                member.emit(
                    ClaimRefused(
                        group=member.group,
                        consumer=member.consumer_id,
                        topic=owned.topic,
                        partition=owned.partition,
                        holder=holder,
                    )
                )
                return Refusal(path, f"owned by {holder}")
            if node is None:
                return Refusal(path, "owned by somebody who has just let go")
        member.claims.add(owned)
        member.tell(Claimed, owned)
        if member.edition.guards and not (yield from still_mine(member, owned)):
            return Refusal(path, "deleted as soon as it was there")
    return None


def still_mine(member: Member, owned: Owned) -> Steps[bool]:
    """Whether the owner node is there and of this session; from now on it is watched."""
    node = yield from _guard(member, owned)
    return node is not None and node.ephemeral_owner == member.session_id()


def in_the_way(member: Member, owned: Owned) -> Steps[bool]:
    """Whether the owner node of a partition that we left out is still there; from now on it is watched."""
    return (yield from _guard(member, owned)) is not None


def _guard(member: Member, owned: Owned) -> Steps[Node | None]:
    path = paths.owner(member.group, owned.topic, owned.partition)
    watched = path in member.guarded
    member.guarded.add(path)  # before the watch is set: it may fire before we hear that it is
    try:
        node: Node | None = yield Exists(path, watch=not watched)
    except RegistryError:
        member.guarded.discard(path)
        raise
    return node


def _is_mine(member: Member, node: Node, thread: ThreadId) -> bool:
    if member.edition.only_mine:
        return node.ephemeral_owner == member.session_id()
    return node.value == str(thread).encode()


def _tell_blocked(member: Member, owned: Owned, node: Node) -> None:
    member.emit(
        ClaimBlocked(
            group=member.group,
            consumer=member.consumer_id,
            topic=owned.topic,
            partition=owned.partition,
            holder=node.value[:100].decode("utf-8", "replace"),
            session=node.ephemeral_owner,
        )
    )
