"""Algorithm 1, line by line, as a generator of registry operations.

The numbers in the comments are the lines of the figure. ``rebalance`` does no input or output: it yields steps and
receives answers, so a thread runs it on a real ZooKeeper and the simulator runs it in virtual time.

The default edition follows this order, each step answering a failure of the figure (docs/algorithm1.md):
stop -> commit, fenced -> release what is mine -> sync and read, the watches set by these very reads -> share ->
note the intent, then claim -> read offsets -> start. A change seen meanwhile raises ``member.dirty`` and
``Member.life`` comes back here.

Paper: §3.2, Algorithm 1.  Differs: docs/paper-vs-code.md (N, order, retries, unit of ownership).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from consumers.algorithm1.ownership import Refusal, claim, in_the_way, release, still_mine
from consumers.algorithm1.reasons import describe
from consumers.algorithm1.registries import View, read_offset, read_registries, subscribed_topics
from consumers.algorithm1.steps import Claim, Owned, Start, Steps, Stop, Wait
from consumers.events import AttemptFailed, ClaimTakenOut, GaveUp, RebalanceDone, RebalanceStarted
from zk_registry.operations import RegistryError, SessionExpired

if TYPE_CHECKING:
    from consumers.algorithm1.assign import ThreadId
    from consumers.algorithm1.member import Member


def rebalance(member: Member) -> Steps[bool]:
    """Try until this member owns its share; False if its edition gave up. SessionExpired passes through."""
    started = member.clock.monotonic()
    before = frozenset(member.reading)
    reason = describe(member.causes) if member.causes else None
    member.emit(
        RebalanceStarted(group=member.group, consumer=member.consumer_id, edition=member.edition.name, reason=reason)
    )
    for attempt in member.edition.attempts():
        if attempt:
            # "... releases all the partitions that it currently owns, waits a bit and retries" (§3.2).
            yield Wait(member.edition.back_off(attempt, member.random), "after a failed attempt")
            if member.closing:
                return False
        try:
            refusal = yield from one_attempt(member)
        except SessionExpired:
            raise
        except RegistryError as error:
            refusal = Refusal(error.path, str(error))
        if refusal is None:
            member.counters.rebalanced(member.clock.monotonic() - started, before, frozenset(member.reading))
            member.emit(
                RebalanceDone(
                    group=member.group,
                    consumer=member.consumer_id,
                    owned=tuple(map(str, sorted(member.reading))),
                    attempts=attempt + 1,
                    reason=describe(member.causes),
                )
            )
            member.causes.clear()
            return True
        member.counters.failed_attempts += 1
        member.emit(
            AttemptFailed(group=member.group, consumer=member.consumer_id, path=refusal.path, reason=refusal.reason)
        )
    member.counters.gave_up += 1
    member.emit(GaveUp(group=member.group, consumer=member.consumer_id))
    yield Stop()
    return False


def one_attempt(member: Member) -> Steps[Refusal | None]:
    """Go once through the figure; a Refusal names the owner node that was somebody else's."""
    rules = member.edition
    topics = yield from subscribed_topics(member)
    view = (yield from read_registries(member, topics)) if rules.reads_first else None
    if rules.stops_first:
        yield from member.stop_and_commit()
    rounds = [[topic] for topic in topics] if rules.topic_by_topic else [topics]
    for turn in rounds or [[]]:  # 1: for each topic that this consumer subscribes to
        yield from release(member, turn)  # 2: take our partitions out of the ownership registry
        if view is None or rules.topic_by_topic:
            view = yield from read_registries(member, turn)  # 3: read broker and consumer registries
        shares = share_out(member, view, turn)  # 4-8: partitions, consumers, sort, j and N, ours
        refusal = yield from claim(member, shares, view.sessions)  # 9, 10: for each of ours, set the owner
        if refusal:
            yield from release(member, topics)
            return refusal
        claims: list[Claim] = []
        for owned, thread in _claimed(member, shares):
            offset = yield from read_offset(member, owned)  # 11: its offset in the offset registry
            claims.append(Claim(owned, thread, view.addresses[owned.partition.broker_id], offset))
        if not rules.stops_first:
            # The figure never says when the old threads end; at the latest they end where the new ones begin.
            old = frozenset(owned for owned in member.reading if owned.topic in turn)
            yield Stop(old)
            for owned in old:
                del member.reading[owned]
        member.reading |= {claim.owned: (claim.thread, claim.address) for claim in claims}
        yield Start(tuple(claims))  # 12: start pulling from that offset
    return None


def still_right(member: Member) -> Steps[bool]:
    """Tell whether the registries, read and watched anew, still give this member exactly what it reads."""
    for owned in sorted(member.reading):
        if not (yield from still_mine(member, owned)):
            member.tell(ClaimTakenOut, owned)
            member.causes.append(f"its claim of {owned} was taken out")
            return False
    topics = yield from subscribed_topics(member)
    view = yield from read_registries(member, topics)
    shares = share_out(member, view, topics)
    for owned in sorted(member.blocked.keys() & shares.keys()):
        if not (yield from in_the_way(member, owned)):
            member.causes.append(f"the node in the way of {owned} is gone")
            return False
    ours = {o: (thread, view.addresses[o.partition.broker_id]) for o, thread in _claimed(member, shares)}
    return member.reading == ours


def _claimed(member: Member, shares: Mapping[Owned, ThreadId]) -> list[tuple[Owned, ThreadId]]:
    """The share without what a stranger's node keeps us from."""
    return [(owned, thread) for owned, thread in shares.items() if owned not in member.blocked]


def share_out(member: Member, view: View, topics: Iterable[str]) -> dict[Owned, ThreadId]:
    """Lines 4 to 8 for each topic: every stream of this consumer gets its own share."""
    shares: dict[Owned, ThreadId] = {}
    for topic in topics:
        partitions = view.partitions.get(topic, ())  # 4: partitions of the topic on all brokers
        threads = view.threads.get(topic, ())  # 5: consumers of the group that subscribe to it
        for me in threads:
            if me.consumer_id == member.consumer_id:
                for partition in member.edition.share(partitions, threads, me):  # 6-8: sort, j, N, ours
                    shares[Owned(topic, partition)] = me
    return shares
