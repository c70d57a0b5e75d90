"""Lab 5, a model solution: one consumer's view of the four registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from zookeeper import ConnectionLoss, NodeExists, NoNode, ZooKeeper

T = TypeVar("T")


def asked(call: Callable[[], T]) -> T:
    """Ask until there is an answer. For what may be done twice."""
    while True:
        try:
            return call()
        except ConnectionLoss:
            continue


class Member:
    """One consumer of a group that reads one topic."""

    def __init__(self, zk: ZooKeeper, group: str, consumer_id: str, topic: str) -> None:
        self._zk, self._id, self._topic = zk, consumer_id, topic
        self._ids = f"/consumers/{group}/ids"
        self._owners = f"/consumers/{group}/owners/{topic}"
        self._offsets = f"/consumers/{group}/offsets/{topic}"
        self._brokers = f"/brokers/topics/{topic}"
        self._claims: set[str] = set()
        self._changed = False

    def join(self) -> bool:
        """Register in the consumer registry; False if the id is taken by another session."""
        return self._make(f"{self._ids}/{self._id}", self._topic)

    def partitions(self) -> list[str]:
        """All partitions of the topic on all brokers, sorted; watches them."""
        if asked(lambda: self._zk.exists(self._brokers, True)) is None:
            return []
        found = []
        for broker, count in self._values(self._brokers, True):
            found += [(int(broker), number) for number in range(int(count))]
        return [f"{broker}-{number}" for broker, number in sorted(found)]

    def consumers(self) -> list[str]:
        """The members of the group that read this topic, sorted; watches them."""
        return sorted(name for name, topic in self._values(self._ids, False) if topic == self._topic)

    def claim(self, partition: str) -> bool:
        """Become the owner of a partition; False if somebody else is."""
        is_mine = self._make(f"{self._owners}/{partition}", self._id)
        if is_mine:
            self._claims.add(partition)
        return is_mine

    def release(self, partition: str) -> None:
        """Give a partition up, if it is ours."""
        path = f"{self._owners}/{partition}"
        self._claims.discard(partition)
        if asked(lambda: self._zk.exists(path)) == self._zk.session():
            try:
                asked(lambda: self._zk.delete(path))
            except NoNode:
                pass

    def claims(self) -> list[str]:
        """The partitions that this session owns, sorted."""
        return sorted(self._claims)

    def store(self, partition: str, offset: int) -> None:
        """Write the next offset of a partition to the offset registry."""
        path, value = f"{self._offsets}/{partition}", str(offset).encode()
        while True:
            try:
                asked(lambda: self._zk.set(path, value))
                return
            except NoNode:
                pass
            try:
                asked(lambda: self._zk.create(path, value, False))
                return
            except NodeExists:
                pass

    def stored(self, partition: str) -> int | None:
        """The stored offset, or None."""
        try:
            value, _ = asked(lambda: self._zk.get(f"{self._offsets}/{partition}"))
        except NoNode:
            return None
        return int(value)

    def watched(self, path: str) -> None:
        """A watch fired."""
        self._changed = True

    def changed(self) -> bool:
        """Whether a watch fired since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def expired(self) -> bool:
        """The session ended: forget what is lost and join again."""
        self._claims.clear()
        self._changed = True
        return self.join()

    def _make(self, path: str, value: str) -> bool:
        """Make an ephemeral node; whether it is this session's afterwards."""
        while True:
            try:
                asked(lambda: self._zk.create(path, value.encode(), True))
                return True
            except NodeExists:
                owner = asked(lambda: self._zk.exists(path))
            if owner is not None:  # otherwise it went away in between: try once more
                return owner == self._zk.session()

    def _values(self, path: str, watch_values: bool) -> list[tuple[str, str]]:
        """Names below a path with their values; what goes away meanwhile is left out."""
        try:
            names = asked(lambda: self._zk.children(path, True))
        except NoNode:
            return []
        found = []
        for name in names:
            try:
                value, _ = asked(lambda name=name: self._zk.get(f"{path}/{name}", watch_values))
            except NoNode:
                continue
            found.append((name, value.decode()))
        return found
