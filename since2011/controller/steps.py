"""The controller's steps: registry operations and requests to send, yielded by generators that do no I/O.

A driver (the broker's controller thread, or a test on a fake ZooKeeper) performs each and sends the answer back in:

| step | answer |
|---|---|
| a registry Operation | see ``zk_registry.operations``; a RegistryError is thrown in |
| Send(messages) | None; they are on their way in this order, each broker for itself |

Every write of a controller is one transaction with a check of the node that says which controller is in office: it
raises ``Deposed`` when another is. Writes go in transactions of up to ``CHUNK``; one that is refused is taken apart,
so that what is refused costs itself only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.controller.context import Context, Partition
from since2011.controller.elections import Elected
from since2011.controller.outbox import Message
from zk_registry.modern import paths, texts
from zk_registry.modern.texts import NO_LEADER, PartitionState
from zk_registry.operations import (
    BadVersion,
    Check,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    NoNode,
    Operation,
    Pipeline,
    RegistryError,
    Set,
)

T = TypeVar("T")
Write = Create | Set | Delete
CHUNK = 100
"""Writes, or pairs of them, in one transaction."""


@dataclass(frozen=True, slots=True)
class Send:
    """Put these requests on their way."""

    messages: tuple[Message, ...]


Step = Operation | Send
Steps = Generator[Step, Any, T]
Choose = Callable[[TopicPartition, Partition], Elected | None]
"""What is to change about a partition; None: nothing."""


class Deposed(Kafka2011Error):
    """Another controller is in office: nothing more is to be written or sent."""


def send(context: Context) -> Steps[None]:
    """Send what was decided."""
    messages = context.outbox.flush(context)
    if messages:
        yield Send(messages)


def guarded(context: Context, groups: Iterable[Sequence[Write]]) -> Steps[list[RegistryError | None]]:
    """Write these groups, each all or nothing, as long as this controller is in office: why each was refused."""
    waiting = [tuple(group) for group in groups]
    refusals: list[RegistryError | None] = []
    chunks = [waiting[at : at + CHUNK] for at in range(0, len(waiting), CHUNK)]
    answers = yield from _commit(context, [tuple(write for group in chunk for write in group) for chunk in chunks])
    for chunk, answer in zip(chunks, answers, strict=True):
        if answer is None or len(chunk) == 1:
            refusals += [answer] * len(chunk)
        else:
            refusals += yield from _commit(context, chunk)
    return refusals


def _commit(context: Context, transactions: Sequence[Sequence[Write]]) -> Steps[list[RegistryError | None]]:
    if not transactions:
        return []
    check = Check(paths.CONTROLLER_EPOCH, context.epoch_version)
    answers = yield Pipeline(tuple(Multi((check, *writes)) for writes in transactions))
    for answer in answers:
        if isinstance(answer, BadVersion | NoNode) and answer.path == paths.CONTROLLER_EPOCH:
            raise Deposed(f"controller {context.broker_id} of epoch {context.epoch} is not in office any more")
        if isinstance(answer, RegistryError) and not answer.definite:
            raise answer
    return list(answers)


def read(context: Context, wanted: Iterable[str], *, watch: bool = True) -> Steps[dict[str, Node]]:
    """The nodes that are there, by path; with ``watch``, a change of each will be told."""
    asked = list(dict.fromkeys(wanted))
    if not asked:
        return {}
    answers = yield Pipeline(tuple(Get(path, watch and context.watch(path)) for path in asked))
    found = {}
    for path, answer in zip(asked, answers, strict=True):
        if isinstance(answer, Node):
            found[path] = answer
        elif isinstance(answer, NoNode):
            context.watched.discard(path)
        else:
            raise answer
    return found


def appears(context: Context, path: str) -> Steps[Node | None]:
    """A node that may not be there, with a watch that tells when it comes or changes."""
    while True:
        if (yield Exists(path, context.watch(path))) is None:
            return None
        try:
            node: Node = yield Get(path)
        except NoNode:
            continue
        return node


def read_states(context: Context, keys: Iterable[TopicPartition], *, watch: bool = False) -> Steps[None]:
    """Read the states of these partitions again. Deposed if a later controller has written one."""
    by_path = {paths.state(key.topic, key.partition): key for key in keys}
    nodes = yield from read(context, by_path, watch=watch)
    for path, node in nodes.items():
        partition = context.partition(by_path[path])
        try:
            state = texts.parse_state(node.value)
        except ValueError:
            if partition is not None:
                partition.version = node.version  # what is known of it stands, and the next decision is written over it
            continue
        if state.controller_epoch > context.epoch:
            raise Deposed(f"{path} was written by controller {state.controller_epoch}")
        if partition is not None:
            partition.state, partition.version = state, node.version


def decide(context: Context, keys: Iterable[TopicPartition], choose: Choose) -> Steps[list[TopicPartition]]:
    """Write what ``choose`` says of each partition, as the next leader epoch; those that have changed.

    Where a leader has changed the in-sync set meanwhile, its node is read again, and ``choose`` asked again.
    """
    changed: list[TopicPartition] = []
    waiting = list(keys)
    while waiting:
        decisions, elections = {}, {}
        for key in waiting:
            partition = context.partition(key)
            if partition is not None and partition.state is not None:
                elected = choose(key, partition)
                if elected is not None:
                    decisions[key] = _next(context, partition.state, elected)
                    if elected.leader not in (partition.state.leader, NO_LEADER):
                        elections[key] = elected.unclean
        waiting = yield from _write(context, decisions)
        lost = set(waiting)
        changed += [key for key in decisions if key not in lost]
        context.counts.elections += len(elections.keys() - lost)
        context.counts.unclean += sum(unclean for key, unclean in elections.items() if key not in lost)
        yield from read_states(context, waiting)
    return changed


def _next(context: Context, state: PartitionState, elected: Elected) -> PartitionState:
    return PartitionState(elected.leader, state.leader_epoch + 1, elected.isr, context.epoch)


def _write(context: Context, decisions: Mapping[TopicPartition, PartitionState]) -> Steps[list[TopicPartition]]:
    """Write the states; the partitions whose nodes somebody else has written."""
    writes = [
        (Set(paths.state(key.topic, key.partition), state.encode(), context[key].version),)
        for key, state in decisions.items()
    ]
    refusals = yield from guarded(context, writes)
    lost = []
    for (key, state), refusal in zip(decisions.items(), refusals, strict=True):
        if refusal is None:
            context[key].state = state
            context[key].version += 1
        elif isinstance(refusal, BadVersion):
            lost.append(key)
        elif not isinstance(refusal, NoNode):
            raise refusal
    return lost
