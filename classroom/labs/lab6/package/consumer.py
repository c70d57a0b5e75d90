"""Lab 6: a consumer of a group, from joining to leaving. Fill the hole; README.md says what it has to do."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any


class Consumer:
    """One consumer. Each runs on a machine of its own: they share nothing but ZooKeeper."""

    def __init__(self, group: str, consumer_id: str, topic: str, seed: int) -> None:
        self.group, self.consumer_id, self.topic, self.seed = group, consumer_id, topic, seed

    def life(self) -> Generator[object, Any, None]:
        """Join, read your share, commit, and rebalance whenever something changes, until you are asked to leave."""
        yield from ()
        raise NotImplementedError("life: yield steps (steps.py), beginning with your id node")
