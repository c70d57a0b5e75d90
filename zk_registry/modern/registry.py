"""Reading and writing the nodes of ZooKeeper-era Kafka: what a controller and the brokers of 3.9 do, one method each.

Writes are conditional, so that of two brokers that write at once one is refused and looks again. A topic is made and
removed in one transaction as long as it has no more than ``CHUNK`` partitions; a larger one in several, so ordered that
whoever finds the rest can finish: a partition without a state is given one, a topic below ``/admin/delete_topics`` is
deleted.

Where a controller is elected (``/controller``), states and deletions are its work: then only the topic's node, or the
request for its deletion, is written.

The paper's answer (§3.2): each broker announces the partitions it has, and nobody decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

from kafka2011.events import Journal
from zk_registry.events import NodeIgnored
from zk_registry.modern import paths, texts
from zk_registry.modern.texts import Assignment, BrokerEntry, PartitionState
from zk_registry.operations import (
    BadVersion,
    Check,
    Children,
    ConnectionLoss,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Pipeline,
    Registry,
    RegistryError,
    Set,
)

T = TypeVar("T")
Watch = Callable[[str], None]
Write = Create | Set | Delete | Check

CHUNK = 1000
"""Partitions written in one transaction, which must stay below a million bytes."""
KEPT_CHANGES = 1000
"""Notices of changed settings that are kept; older ones have been seen by every broker that is connected."""
_TRIES = 20


def new_id() -> str:
    """A random id as Kafka writes it; never one that begins with a dash, which a command would take for an option."""
    return texts.encode_id(new_uuid())


def new_uuid() -> UUID:
    """The same as a number."""
    while True:
        number = uuid4()
        if not texts.encode_id(number).startswith("-"):
            return number


class ModernRegistry:
    """The tree below the chroot, as one session sees it. Thread: any; each call waits for ZooKeeper."""

    def __init__(self, registry: Registry, *, journal: Journal | None = None) -> None:
        self._registry, self._journal = registry, journal or Journal()
        self._ignored: set[str] = set()

    def prepare(self) -> str:
        """Make the parents a real broker expects; the cluster's id, which the first broker chooses."""
        for path in paths.CONTAINERS:
            try:
                self._registry.perform(Create(path, None, make_parents=True))
            except NodeExists:
                continue
        while True:
            try:
                return texts.parse_cluster_id(self._registry.perform(Get(paths.CLUSTER_ID)).value)
            except NoNode:
                pass
            try:
                value = texts.encode_cluster_id(new_id())
                self._registry.perform(Create(paths.CLUSTER_ID, value, make_parents=True))
            except NodeExists:
                continue

    # -- reading --------------------------------------------------------------------------------------------------

    def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        """Names below a node that is one of ``CONTAINERS``."""
        names: tuple[str, ...] = self._registry.perform(Children(path, watch is not None), watch)
        return names

    def values(
        self, wanted: Mapping[str, bool], parse: Callable[[bytes], T], watch: Watch
    ) -> dict[str, tuple[T, Node]]:
        """The nodes that are there, by path, read in one go. True after a path: watch it, whether it is there or not.

        What cannot be understood is left out, once with an event.
        """
        answers = self._pipeline([Get(path, watched) for path, watched in wanted.items()], watch)
        # A missing node is watched by asking whether it exists. If it does by now, it is read again.
        missing = [p for (p, watched), a in zip(wanted.items(), answers, strict=True) if watched and _is_missing(a)]
        found = dict(zip(wanted, answers, strict=True))
        appeared = self._pipeline([Exists(path, True) for path in missing], watch)
        again = [path for path, node in zip(missing, appeared, strict=True) if isinstance(node, Node)]
        found |= dict(zip(again, self._pipeline([Get(path) for path in again], watch), strict=True))
        parsed = {}
        for path, node in found.items():
            if isinstance(node, Node):
                try:
                    parsed[path] = parse(node.value), node
                except ValueError as error:
                    self._ignore(path, str(error))
        return parsed

    def controller(self, watch: Watch | None = None) -> int | None:
        """The elected controller, if there is one."""
        wanted = {paths.CONTROLLER: watch is not None}
        found = self.values(wanted, texts.parse_controller, watch or _nobody)
        return found[paths.CONTROLLER][0] if found else None

    def config_entities(self) -> list[str]:
        """Everything that has settings of its own: ``topics/t``, ``brokers/1``, ``users/u/clients/c`` …"""
        kinds = ("topics", "brokers", "clients", "users", "ips")
        listed = self._pipeline([Children(paths.config(kind)) for kind in kinds], _nobody)
        entities = [f"{kind}/{name}" for kind, names in zip(kinds, listed, strict=True) for name in names]
        users = [entity for entity in entities if entity.startswith("users/")]
        below = self._pipeline([Children(paths.config(f"{user}/clients")) for user in users], _nobody)
        for user, clients in zip(users, below, strict=True):
            entities += [f"{user}/clients/{client}" for client in clients] if isinstance(clients, tuple) else []
        return entities

    # -- topics ---------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, assignment: Assignment, settings: Mapping[str, str]) -> None:
        """Make a topic as broker and controller together do: led by the first replica, all replicas in sync.

        NodeExists at the topic's path: there is one. A lost answer is looked up by the topic's id.
        """
        decides = self.controller() is None
        states = first_states(assignment) if decides else {}
        chunks = _chunks(sorted(states))
        begun: list[Write] = [Create(paths.topic(name), assignment.encode())]
        if decides:
            begun.append(Create(paths.partitions(name), None))
        begun += _state_creations(name, chunks[0], states)
        config = paths.config(f"topics/{name}")
        settled: Write = Create(config, texts.encode_config(settings))
        try:
            self._registry.perform(Multi((settled, *begun)))
        except NodeExists as error:
            if error.path != config:
                raise
            # What a deleted topic of this name has left behind.
            self._registry.perform(Multi((Set(config, texts.encode_config(settings)), *begun)))
        except ConnectionLoss:
            if not self._is_there(name, assignment):
                raise
        for chunk in chunks[1:]:
            self._registry.perform(Multi(tuple(_state_creations(name, chunk, states))))

    def add_states(self, states: Mapping[tuple[str, int], PartitionState]) -> None:
        """Give partitions that have none a state; somebody else may be doing the same."""
        parents = dict.fromkeys(paths.partitions(name) for name, _ in states)
        self._pipeline([Create(path, None) for path in parents], _nobody)
        writes = []
        for (name, index), state in states.items():
            writes += [Create(paths.partition(name, index), None), Create(paths.state(name, index), state.encode())]
        self._pipeline(writes, _nobody)

    def add_partitions(self, name: str, change: Callable[[Assignment], Assignment]) -> None:
        """Give a topic more partitions; ``change`` makes the new assignment out of the one that is there."""
        for _ in range(_TRIES):
            node: Node = self._registry.perform(Get(paths.topic(name)))
            before = texts.parse_assignment(node.value)
            after = change(before)
            states = first_states(after) if self.controller() is None else {}
            new = sorted(states.keys() - before.partitions.keys())
            chunks = _chunks(new)
            grown = Set(paths.topic(name), after.encode(), node.version)
            try:
                self._registry.perform(Multi((grown, *_state_creations(name, chunks[0], states))))
            except BadVersion:
                continue
            for chunk in chunks[1:]:
                self._registry.perform(Multi(tuple(_state_creations(name, chunk, states))))
            return
        raise BadVersion(paths.topic(name), "others change it all the time; try again")

    def delete_topic(self, name: str) -> None:
        """Remove a topic and its settings, or ask the controller to; NoNode if there is none."""
        if self.controller() is not None:
            if self._registry.perform(Exists(paths.topic(name))) is None:
                raise NoNode(paths.topic(name))
            self._create_if_missing(paths.deletion(name))
            return
        for _ in range(_TRIES):
            removals = self._removals(name)
            try:
                while len(removals) > 4 * CHUNK:
                    self._registry.perform(Multi(tuple(removals[: 2 * CHUNK])))
                    del removals[: 2 * CHUNK]
                self._registry.perform(Multi(tuple(removals)))
                return
            except (NoNode, NotEmpty, BadVersion):
                continue  # somebody else is deleting or growing it: look again
        raise NotEmpty(paths.topic(name), "others change it all the time; try again")

    def finish_deletion(self, name: str) -> None:
        """Delete what is left of a topic somebody began to delete."""
        try:
            self.delete_topic(name)
        except NoNode:
            self._pipeline([Delete(paths.config(f"topics/{name}")), Delete(paths.deletion(name))], _nobody)

    def _removals(self, name: str) -> list[Write]:
        """Every deletion that removes a topic, leaves first."""
        topic: Node = self._registry.perform(Get(paths.topic(name)))
        try:
            indexes = self.children(paths.partitions(name))
            parent: list[Write] = [Delete(paths.partitions(name))]
        except NoNode:
            indexes, parent = (), []
        if len(indexes) > CHUNK:
            self._create_if_missing(paths.deletion(name))
        states = [f"{paths.partitions(name)}/{index}/state" for index in indexes]
        there = self._pipeline([Exists(path) for path in states], _nobody)
        removals: list[Write] = []
        for path, node in zip(states, there, strict=True):
            removals += [Delete(path)] if isinstance(node, Node) else []
            removals.append(Delete(path.removesuffix("/state")))
        removals += [*parent, Delete(paths.topic(name), topic.version)]
        rest = (paths.config(f"topics/{name}"), paths.deletion(name))
        kept = self._pipeline([Exists(path) for path in rest], _nobody)
        removals += [Delete(path) for path, node in zip(rest, kept, strict=True) if isinstance(node, Node)]
        return removals

    def _is_there(self, name: str, assignment: Assignment) -> bool:
        try:
            node: Node = self._registry.perform(Get(paths.topic(name)))
            return texts.parse_assignment(node.value).topic_id == assignment.topic_id
        except (NoNode, ValueError):
            return False

    # -- settings and ids -----------------------------------------------------------------------------------------

    def alter_config(self, entity: str, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """Change the settings of an entity and leave a notice of it, both or neither."""
        path = paths.config(entity)
        notice = Create(paths.CHANGE, texts.encode_change(entity), sequential=True)
        for _ in range(_TRIES):
            try:
                node: Node | None = self._registry.perform(Get(path))
            except NoNode:
                node = None
            settings = {} if node is None else texts.parse_config(node.value)
            value = texts.encode_config(change(settings))
            if node is None and path.count("/") > 3:
                self._create_if_missing(path.rpartition("/")[0], make_parents=True)
            write = Create(path, value) if node is None else Set(path, value, node.version)
            try:
                self._registry.perform(Multi((write, notice)))
                return
            except (BadVersion, NodeExists, NoNode):
                continue
        raise BadVersion(path, "others change it all the time; try again")

    def purge_changes(self, names: Sequence[str]) -> None:
        """Remove all but the newest notices."""
        self._pipeline([Delete(f"{paths.CHANGES}/{name}") for name in sorted(names)[:-KEPT_CHANGES]], _nobody)

    def take_producer_ids(self, broker_id: int, at_least: int = 0) -> range:
        """A block of a thousand producer ids nobody else gets, none below ``at_least``."""
        for _ in range(_TRIES):
            node: Node = self._registry.perform(Get(paths.PRODUCER_IDS))
            first = max(at_least, texts.parse_producer_ids(node.value))
            try:
                self._registry.perform(
                    Set(paths.PRODUCER_IDS, texts.encode_producer_ids(broker_id, first), node.version)
                )
                return range(first, first + texts.PRODUCER_ID_BLOCK)
            except BadVersion:
                continue
        raise BadVersion(paths.PRODUCER_IDS, "others change it all the time; try again")

    # -- inside ---------------------------------------------------------------------------------------------------

    def _pipeline(self, operations: Sequence[Any], watch: Watch) -> tuple[Any, ...]:
        """The answers; whatever is not a plain refusal of one of them is raised."""
        if not operations:
            return ()
        answers: tuple[Any, ...] = self._registry.perform(Pipeline(tuple(operations)), watch)
        for answer in answers:
            if isinstance(answer, RegistryError) and not isinstance(answer, NoNode | NodeExists):
                raise answer
        return answers

    def _create_if_missing(self, path: str, *, make_parents: bool = False) -> None:
        try:
            self._registry.perform(Create(path, None, make_parents=make_parents))
        except NodeExists:
            pass

    def _ignore(self, path: str, reason: str) -> None:
        if path not in self._ignored:
            self._ignored.add(path)
            self._journal.emit(NodeIgnored(path=path, reason=reason))


def first_states(assignment: Assignment) -> dict[int, PartitionState]:
    """What a controller decides for new partitions: the first replica leads, all are in sync."""
    return {
        index: PartitionState(replicas[0] if replicas else texts.NO_LEADER, 0, replicas)
        for index, replicas in assignment.partitions.items()
    }


def parse_brokers(nodes: Mapping[str, tuple[BrokerEntry, Node]]) -> dict[int, tuple[BrokerEntry, int]]:
    """Brokers by id, each with its epoch."""
    named = ((path.rpartition("/")[2], entry, node) for path, (entry, node) in nodes.items())
    return {int(name): (entry, node.czxid) for name, entry, node in named if name.isdecimal()}


def _state_creations(name: str, indexes: Iterable[int], states: Mapping[int, PartitionState]) -> list[Write]:
    writes: list[Write] = []
    for index in indexes:
        writes += [Create(paths.partition(name, index), None), Create(paths.state(name, index), states[index].encode())]
    return writes


def _chunks(indexes: Sequence[int]) -> list[Sequence[int]]:
    return [indexes[at : at + CHUNK] for at in range(0, len(indexes), CHUNK)] or [()]


def _is_missing(answer: object) -> bool:
    return isinstance(answer, NoNode)


def _nobody(path: str) -> None:
    """The watcher of reads that leave no watch."""
