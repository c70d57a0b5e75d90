"""From nodes to images: which nodes say what, which are watched, and what is read again when one has changed.

| changed | read again |
|---|---|
| children of /brokers/ids, a broker | all brokers: there are few |
| children of /brokers/topics | the list; then topics that are new |
| a topic | its node, its partitions' states, its settings |
| a state | that topic |
| children of /config/changes | the new notices; then the settings they name |
| children of /admin/delete_topics | the list: these topics are gone for everybody, before their nodes are |
| /controller | itself |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from since2011.topics.image import ZERO_ID, BrokerImage, ClusterImage, PartitionImage, TopicImage
from zk_registry.modern import paths, texts
from zk_registry.modern.registry import ModernRegistry, first_states, parse_brokers
from zk_registry.modern.texts import Assignment, PartitionState

_CHANGE_NAME = len("config_change_")


class Reading:
    """Reads nodes and keeps count of the watches. Thread: one at a time."""

    def __init__(self, registry: ModernRegistry, note: Callable[[str], None]) -> None:
        self._registry, self._note = registry, note
        self._watched: set[str] = set()
        self._last_change = -1
        self._deleting: frozenset[str] = frozenset()
        self._stateless: set[tuple[str, int]] = set()
        """Partitions found without a state."""

    def unwatched(self, touched: Collection[str]) -> None:
        """The watches on these have fired, and are no more. ``/``: all of them."""
        if "/" in touched:
            self._watched.clear()
        self._watched.difference_update(touched)

    def everything(self, image: ClusterImage) -> ClusterImage:
        """The image as the nodes have it now."""
        image = replace(image, elected_controller=self._controller(), number=image.number + 1)
        self._new_changes()
        image = self._brokers(image)
        self._deleting = frozenset(self._children(paths.DELETIONS))
        names = self._children(paths.TOPICS)
        image = self._topics(image, names, gone=image.topics.keys() - set(names))
        entities = self._registry.config_entities()
        stale = [entity for entity in image.configs if entity not in entities]
        return self._configs(image.with_configs(dict.fromkeys(stale)), entities)

    def again(self, image: ClusterImage, noted: Iterable[str]) -> ClusterImage:
        """The image after what lies at these paths was read again; the same one if nothing has changed."""
        noted = set(noted)
        before = image
        if paths.CONTROLLER in noted:
            image = replace(image, elected_controller=self._controller(), number=image.number + 1)
        if any(path.startswith(paths.BROKER_IDS) for path in noted):
            image = self._brokers(image)
        wanted = {name for path in noted if (name := _topic_of(path)) is not None}
        gone: set[str] = set()
        if paths.DELETIONS in noted:
            before_them, self._deleting = self._deleting, frozenset(self._children(paths.DELETIONS))
            wanted |= before_them ^ self._deleting
        if paths.TOPICS in noted:
            names = set(self._children(paths.TOPICS))
            gone = image.topics.keys() - names
            wanted |= names - image.topics.keys()
            wanted |= {name for name in names if paths.topic(name) not in self._watched}
        image = self._topics(image, wanted, gone)
        entities = {path.removeprefix("/config/") for path in noted if _is_config(path)}
        if paths.CHANGES in noted:
            entities |= set(self._new_changes())
        image = self._configs(image, entities | {f"topics/{name}" for name in wanted | gone})
        return before if _same(before, image) else image

    def missing_states(self, image: ClusterImage, broker_id: int) -> dict[tuple[str, int], PartitionState]:
        """The first states of partitions that have none and should be led by this broker."""
        found = {}
        for name, index in self._stateless:
            partition = image.partition(name, index)
            if partition is not None and partition.replicas[:1] == (broker_id,):
                found[name, index] = first_states(Assignment({index: partition.replicas}))[index]
        return found

    # -- inside ---------------------------------------------------------------------------------------------------

    def _wants_watch(self, path: str) -> bool:
        """Whether a watch is to be left: not if there is one that has not fired, or they would pile up."""
        if path in self._watched:
            return False
        self._watched.add(path)
        return True

    def _children(self, path: str) -> tuple[str, ...]:
        return self._registry.children(path, self._note if self._wants_watch(path) else None)

    def _controller(self) -> int | None:
        return self._registry.controller(self._note if self._wants_watch(paths.CONTROLLER) else None)

    def _brokers(self, image: ClusterImage) -> ClusterImage:
        there = [f"{paths.BROKER_IDS}/{name}" for name in self._children(paths.BROKER_IDS)]
        wanted = {path: self._wants_watch(path) for path in there}
        nodes = self._registry.values(wanted, texts.parse_broker, self._note)
        brokers = {
            broker_id: BrokerImage(broker_id, entry.endpoints, entry.rack, epoch, entry.version >= 5)
            for broker_id, (entry, epoch) in parse_brokers(nodes).items()
        }
        return image if brokers == image.brokers else image.with_brokers(brokers)

    def _topics(self, image: ClusterImage, names: Iterable[str], gone: Iterable[str]) -> ClusterImage:
        names = set(names)
        gone = {*gone, *(names & self._deleting)}
        wanted = {paths.topic(name): self._wants_watch(paths.topic(name)) for name in sorted(names - self._deleting)}
        found = self._registry.values(wanted, texts.parse_assignment, self._note)
        topics = {path.rpartition("/")[2]: assignment for path, (assignment, _) in found.items()}
        state_paths = [paths.state(name, index) for name, topic in topics.items() for index in topic.partitions]
        wanted_states = {path: self._wants_watch(path) for path in state_paths}
        states = self._registry.values(wanted_states, texts.parse_state, self._note)
        changed = []
        for name, assignment in topics.items():
            if sorted(assignment.partitions) != list(range(len(assignment.partitions))):
                continue  # a real controller never leaves gaps; whoever wrote this will write again
            partitions = []
            for index in range(len(assignment.partitions)):
                state, node = states.get(paths.state(name, index), (None, None))
                self._stateless.discard((name, index))
                if state is None:
                    self._stateless.add((name, index))
                partitions.append(_partition(assignment, index, state, -1 if node is None else node.version))
            changed.append(TopicImage(name, assignment.topic_id or ZERO_ID, tuple(partitions)))
        missing = [path.rpartition("/")[2] for path in wanted if path not in found]
        gone = {*gone, *missing} & image.topics.keys()
        changed = [topic for topic in changed if image.topics.get(topic.name) != topic]
        return image.with_topics(changed, gone) if changed or gone else image

    def _configs(self, image: ClusterImage, entities: Iterable[str]) -> ClusterImage:
        wanted = {paths.config(entity): False for entity in entities}
        found = self._registry.values(wanted, texts.parse_config, self._note)
        settings = {path.removeprefix("/config/"): found[path][0] if path in found else None for path in wanted}
        changed = {entity: new for entity, new in settings.items() if (new or {}) != dict(image.config(entity))}
        return image.with_configs(changed) if changed else image

    def _new_changes(self) -> list[str]:
        """The entities named by notices that came since the last time."""
        names = self._children(paths.CHANGES)
        new = [name for name in names if _number_of(name) > self._last_change]
        self._last_change = max((_number_of(name) for name in names), default=self._last_change)
        wanted = {f"{paths.CHANGES}/{name}": False for name in new}
        self._registry.purge_changes(names)
        return [entity for entity, _ in self._registry.values(wanted, texts.parse_change, self._note).values()]


def _partition(assignment: Assignment, index: int, state: PartitionState | None, version: int) -> PartitionImage:
    replicas = assignment.partitions[index]
    moving = assignment.adding.get(index, ()), assignment.removing.get(index, ())
    if state is None:
        return PartitionImage(replicas, adding=moving[0], removing=moving[1])
    return PartitionImage(
        replicas,
        state.leader,
        state.leader_epoch,
        state.isr,
        version,
        *moving,
        state.controller_epoch,
        state.recovering,
    )


def _topic_of(path: str) -> str | None:
    """The topic a path lies at or below."""
    below = path.removeprefix(paths.TOPICS + "/")
    return None if below == path else below.partition("/")[0]


def _is_config(path: str) -> bool:
    return path.startswith("/config/") and not path.startswith(paths.CHANGES)


def _number_of(change: str) -> int:
    digits = change[_CHANGE_NAME:]
    return int(digits) if digits.isdecimal() else -1


def _same(before: ClusterImage, after: ClusterImage) -> bool:
    """Whether nothing has changed but the number: tables are replaced, never changed."""
    return (
        before.topics is after.topics
        and before.configs is after.configs
        and before.brokers is after.brokers
        and before.elected_controller == after.elected_controller
    )
