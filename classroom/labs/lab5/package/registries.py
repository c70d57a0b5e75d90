"""Lab 5: one consumer's view of the four registries. Fill the holes; README.md says what each method has to do."""

from __future__ import annotations

from zookeeper import ZooKeeper


class Member:
    """One consumer of a group that reads one topic."""

    def __init__(self, zk: ZooKeeper, group: str, consumer_id: str, topic: str) -> None:
        raise NotImplementedError("Member: remember what you are given")

    def join(self) -> bool:
        """Register in the consumer registry; False if the id is taken by another session."""
        raise NotImplementedError("join")

    def partitions(self) -> list[str]:
        """All partitions of the topic on all brokers, as '<broker>-<number>', sorted; watches them."""
        raise NotImplementedError("partitions")

    def consumers(self) -> list[str]:
        """The members of the group that read this topic, sorted; watches them."""
        raise NotImplementedError("consumers")

    def claim(self, partition: str) -> bool:
        """Become the owner of a partition; False if somebody else is."""
        raise NotImplementedError("claim")

    def release(self, partition: str) -> None:
        """Give a partition up, if it is ours."""
        raise NotImplementedError("release")

    def claims(self) -> list[str]:
        """The partitions that this session owns, sorted."""
        raise NotImplementedError("claims")

    def store(self, partition: str, offset: int) -> None:
        """Write the next offset of a partition to the offset registry."""
        raise NotImplementedError("store")

    def stored(self, partition: str) -> int | None:
        """The stored offset, or None."""
        raise NotImplementedError("stored")

    def watched(self, path: str) -> None:
        """A watch fired."""
        raise NotImplementedError("watched")

    def changed(self) -> bool:
        """Whether a watch fired since the last call; then the registries have to be read again."""
        raise NotImplementedError("changed")

    def expired(self) -> bool:
        """The session ended and zk has a new one: forget what is lost and join again; what join returns."""
        raise NotImplementedError("expired")
