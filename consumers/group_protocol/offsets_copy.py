"""A copy of every committed offset in ZooKeeper, where 2011 kept them all, and who may write it.

    /kafka2011/groups/coordinators/<n>                  ephemeral: the broker that coordinates the groups of <n> now
    /kafka2011/groups/<n>                               the broker that did so last; empty while that is changing
    /kafka2011/groups/<n>/<group>/<topic>/<partition>   {"offset": 42, "leader_epoch": 0, "metadata": "", ...}

<n> is the group's partition of ``__consumer_offsets``. The ephemeral node is a claim, as an owner's is in Algorithm 1:
copies are written by whoever holds it, and it is given up only after the last copy is written. So whoever has the claim
reads all its predecessor had time to copy, and nobody adds to it behind its back.

Paper: §3.2 (the offset registry is persistent, ownership is ephemeral). Spec: modern-group-protocol §11.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote, unquote

from consumers.group_protocol.coordinator.offset_book import CommittedOffset
from consumers.group_protocol.offsets_log import partition_of
from kafka2011.events import Journal
from kafka2011.types import TopicPartition
from zk_registry import paths
from zk_registry.events import NodeIgnored
from zk_registry.operations import (
    BadVersion,
    Children,
    Create,
    Delete,
    DeleteIfMine,
    Get,
    Multi,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Registry,
    Set,
)

CLAIMS = f"{paths.GROUPS}/coordinators"
BATCH = 100
BATCH_SIZE = 200_000
"""Most nodes and bytes of one transaction; ZooKeeper answers a megabyte by closing the connection."""
_FIELDS = ("offset", "leader_epoch", "metadata", "commit_ms")
_BITS = {"offset": 63, "leader_epoch": 31, "commit_ms": 63}
_MAX_TEXT = 32_767

GroupPartition = tuple[str, TopicPartition]
Copies = dict[GroupPartition, CommittedOffset]


def node_name(text: str) -> str:
    """A group's or topic's name as one node's: what ZooKeeper might refuse is written ``%2F``."""
    name = quote(text, safe="", errors="surrogatepass")
    return name if name.strip(".") else name.replace(".", "%2E")


def plain_name(name: str) -> str:
    """The text behind ``node_name``; ValueError if it made no such name."""
    text = unquote(name, errors="surrogatepass")
    if node_name(text) != name:
        raise ValueError("not a name of ours")
    return text


def encode_copy(committed: CommittedOffset) -> bytes:
    """A committed offset as the text of its node."""
    return json.dumps({name: getattr(committed, name) for name in _FIELDS}).encode()


def decode_copy(value: bytes) -> CommittedOffset:
    """Read a node; ValueError if it holds no committed offset."""
    found = json.loads(value)
    if not isinstance(found, dict) or any(name not in found for name in _FIELDS):
        raise ValueError(f"not an object with {', '.join(_FIELDS)}")
    for name, bits in _BITS.items():
        if type(found[name]) is not int or not -(1 << bits) <= found[name] < 1 << bits:
            raise ValueError(f"{name} is not a number of {bits + 1} bits")
    if not isinstance(found["metadata"], str) or len(found["metadata"].encode()) > _MAX_TEXT:
        raise ValueError("metadata is not a short text")
    return CommittedOffset(*(found[name] for name in _FIELDS))


class OffsetsCopy:
    """The tree, as one broker's session writes and reads it. Thread: as its registry."""

    def __init__(self, registry: Registry, broker_id: int, *, journal: Journal | None = None) -> None:
        self._registry, self._me, self._journal = registry, b"%d" % broker_id, journal or Journal()
        self._there: dict[int, set[str]] = {}
        """Nodes that exist, by partition: those are written many at a time."""

    # Claims

    def claim(
        self, numbers: Iterable[int], watcher: Callable[[str], None] | None = None
    ) -> tuple[set[int], dict[int, str]]:
        """Try to become the coordinator of these; return what is ours now, and who holds the others.

        ``watcher`` is called once when claims come or go after that.
        """
        wanted = set(numbers)
        listing = Children(CLAIMS, watch=watcher is not None)
        try:
            names = self._registry.perform(listing, watcher)
        except NoNode:
            self._create(CLAIMS)
            names = self._registry.perform(listing, watcher)
        claimed = {int(name) for name in names if name.isdecimal()}
        free = sorted(wanted - claimed)
        ours = set(free) if self._create_claims(free) else {n for n in free if self._create_claims([n])}
        holders: dict[int, str] = {}
        for number in sorted(wanted - ours):
            holder = self._take_back(number)
            if holder is None:
                ours.add(number)
            else:
                holders[number] = holder
        for number in ours:
            self._there[number] = set()
        return ours, holders

    def _create_claims(self, numbers: list[int]) -> bool:
        creates = tuple(Create(_claim(number), self._me, ephemeral=True) for number in numbers)
        try:
            if creates:
                self._registry.perform(Multi(creates))
        except NodeExists:
            return False
        return True

    def _take_back(self, number: int) -> str | None:
        """None if the claim is ours: the answer was lost, or our own last life made it. Else who holds it."""
        path = _claim(number)
        try:
            node: Node = self._registry.perform(Get(path))
            if node.value != self._me:
                return f"broker {node.value[:20].decode('utf-8', 'replace')}"
            # Made by this session, or by an older one under the id that is registered to this process now.
            create = Create(path, self._me, ephemeral=True)
            self._registry.perform(Multi((Delete(path, node.version), create)))
        except (NoNode, NodeExists, BadVersion):
            return "somebody else a moment ago"
        return None

    def release(self, numbers: Iterable[int], *, again: bool) -> None:
        """Give claims up; every copy must be written before. ``again``: some may be gone, and be another's by now."""
        claims = [_claim(number) for number in sorted(numbers)]
        if again:
            for path in claims:
                self._registry.perform(DeleteIfMine(path))
        elif claims:
            self._registry.perform(Multi(tuple(Delete(path) for path in claims)))

    def succeed(self, number: int) -> bool:
        """Begin to coordinate ``number``; tell whether nobody else has since this broker last did."""
        path = paths.modern_groups(number)
        try:
            last = self._registry.perform(Get(path)).value
        except NoNode:
            return True
        if last == self._me:
            return True
        # Until ``settle``, whoever comes next must not believe what it remembers of the members here: nor must we.
        self._registry.perform(Set(path, b""))
        return False

    def settle(self, number: int) -> None:
        """What this broker's own log says of ``number`` is right from now on."""
        path = paths.modern_groups(number)
        try:
            self._registry.perform(Set(path, self._me))
        except NoNode:
            self._create(path, self._me)

    # Copies

    def read(self, number: int) -> Copies:
        """Every readable copy; what is none is passed over with an event."""
        found: Copies = {}
        top = paths.modern_groups(number)
        there = self._there.setdefault(number, set())
        for group, group_path in self._names(top):
            if partition_of(group) != number:
                self._journal.emit(NodeIgnored(path=group_path, reason=f"a group of partition {partition_of(group)}"))
                continue
            for topic, topic_path in self._names(group_path):
                for name, path in self._names(topic_path):
                    try:
                        value = self._registry.perform(Get(path)).value
                        partition = TopicPartition(topic, _partition(name))
                        found[group, partition] = decode_copy(value)
                    except NoNode:
                        continue
                    except (ValueError, RecursionError) as error:
                        self._journal.emit(NodeIgnored(path=path, reason=f"not a committed offset: {error}"))
                    there.add(path)
        return found

    def write(self, number: int, changes: Mapping[GroupPartition, CommittedOffset | None]) -> None:
        """Copy these; None deletes. Repeating it does no harm."""
        there = self._there.setdefault(number, set())
        known: dict[str, bytes] = {}
        new: dict[str, bytes] = {}
        for (group, partition), committed in changes.items():
            path = _copy_path(number, group, partition)
            if committed is None:
                self._delete(path)
                there.discard(path)
            else:
                (known if path in there else new)[path] = encode_copy(committed)
        for topic in {path.rpartition("/")[0] for path in new}:
            self._create(topic)
        for batch in _batches(new):
            try:
                self._registry.perform(Multi(tuple(Create(path, value) for path, value in batch)))
            except (NodeExists, NoNode):  # some of them were there all the same, or somebody clears up by hand
                for path, value in batch:
                    self._put(path, value)
            there.update(path for path, _ in batch)
        for batch in _batches(known):
            try:
                self._registry.perform(Multi(tuple(Set(path, value) for path, value in batch)))
            except NoNode:  # somebody has cleared up by hand
                for path, value in batch:
                    self._put(path, value)

    def _put(self, path: str, value: bytes) -> None:
        if not self._create(path, value):
            self._registry.perform(Set(path, value))

    def _delete(self, path: str) -> None:
        """Delete a copy, and its topic and group if it was their last."""
        for _ in range(3):
            try:
                self._registry.perform(Delete(path))
            except NoNode:
                pass
            except NotEmpty:
                return
            path = path.rpartition("/")[0]

    def _create(self, path: str, value: bytes = b"") -> bool:
        try:
            self._registry.perform(Create(path, value, make_parents=True))
        except NodeExists:
            return False
        return True

    def _names(self, path: str) -> Iterator[tuple[str, str]]:
        """The plain names below ``path``, each with its own path."""
        try:
            names: tuple[str, ...] = self._registry.perform(Children(path))
        except NoNode:
            return
        for name in names:
            try:
                yield plain_name(name), f"{path}/{name}"
            except ValueError as error:
                self._journal.emit(NodeIgnored(path=f"{path}/{name}", reason=str(error)))


def _claim(number: int) -> str:
    return f"{CLAIMS}/{number}"


def _copy_path(number: int, group: str, partition: TopicPartition) -> str:
    return f"{paths.modern_groups(number)}/{node_name(group)}/{node_name(partition.topic)}/{partition.partition}"


def _partition(name: str) -> int:
    if not (name.isascii() and name.isdecimal() and len(name) <= 9):
        raise ValueError("the name is no partition")
    return int(name)


def _batches(values: Mapping[str, bytes]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    size = 0
    for path, value in values.items():
        if batch and (len(batch) >= BATCH or size + len(path) + len(value) > BATCH_SIZE):
            yield batch
            batch, size = [], 0
        batch.append((path, value))
        size += len(path) + len(value)
    if batch:
        yield batch
