"""Who wants to know what this broker leads: coordinators, which speak for whatever is in partitions they lead.

    elected(index, epoch)   this broker leads the partition from now on; again, with a newer epoch and without a
                            ``resigned`` in between, if it was elected anew: then nobody else has written to it
    resigned(index)         it does not any more

The same calls come whoever decides: a controller, or, where there is none, the metadata.
"""

from __future__ import annotations

from typing import Protocol


class LeadershipListener(Protocol):
    """Follows the leadership of one topic's partitions. Thread: reactor."""

    def elected(self, index: int, epoch: int) -> None:
        """This broker leads the partition in this epoch."""

    def resigned(self, index: int) -> None:
        """This broker leads it no more."""


class Leaderships:
    """What is led, as far as somebody listens or may come to listen. Thread: reactor."""

    def __init__(self) -> None:
        self._epochs: dict[str, dict[int, int]] = {}
        self._listeners: dict[str, list[LeadershipListener]] = {}

    def watch(self, topic: str, listener: LeadershipListener) -> None:
        """Tell ``listener`` of every partition of ``topic``, also of those that are led already."""
        self._listeners.setdefault(topic, []).append(listener)
        for index, epoch in sorted(self._epochs.get(topic, {}).items()):
            listener.elected(index, epoch)

    def unwatch(self, topic: str, listener: LeadershipListener) -> None:
        """Tell it nothing more."""
        self._listeners[topic].remove(listener)

    def watched(self) -> list[str]:
        """The topics somebody listens to."""
        return list(self._listeners)

    def elected(self, topic: str, index: int, epoch: int) -> None:
        """A leadership begins."""
        led = self._epochs.setdefault(topic, {})
        if led.get(index) == epoch:
            return
        led[index] = epoch
        for listener in self._listeners.get(topic, ()):
            listener.elected(index, epoch)

    def resigned(self, topic: str, index: int) -> None:
        """A leadership is over."""
        led = self._epochs.get(topic, {})
        if led.pop(index, None) is None:
            return
        if not led:
            self._epochs.pop(topic, None)
        for listener in self._listeners.get(topic, ()):
            listener.resigned(index)

    def now(self, topic: str, epochs: dict[int, int]) -> None:
        """All partitions of a topic that are led now, by epoch."""
        for index in [index for index in self._epochs.get(topic, {}) if index not in epochs]:
            self.resigned(topic, index)
        for index, epoch in sorted(epochs.items()):
            self.elected(topic, index, epoch)

    def none(self) -> None:
        """Everything is over."""
        for topic in list(self._epochs):
            self.now(topic, {})
