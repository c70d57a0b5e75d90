"""The nouns of the paper as values.

Paper: §3 (topic, broker), §3.1 (offset), §3.2 (partition, registry entries).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

Offset = NewType("Offset", int)
"""A byte position in a partition's endless log; the next message's is this plus this message's size (§3.1)."""

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
MAX_NAME_LENGTH = 200


def is_legal_name(name: str, max_length: int = MAX_NAME_LENGTH) -> bool:
    """Tell whether ``name`` may be a topic, group or consumer id: it becomes a directory or a znode."""
    return 0 < len(name) <= max_length and name not in (".", "..") and _LEGAL_NAME.match(name) is not None


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic on one broker: the directory ``<topic>-<partition>``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class BrokerPartition:
    """A partition of a topic across the cluster, named ``<broker id>-<partition>`` as in the registries (§3.2).

    Ordered numerically. Sort ``str()`` of these where 0.7 sorts strings.
    """

    broker_id: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker_id}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> BrokerPartition:
        """Read ``0-3``; raise ValueError on anything else."""
        broker_id, dash, partition = text.partition("-")
        if not (dash and broker_id.isascii() and broker_id.isdigit() and partition.isascii() and partition.isdigit()):
            raise ValueError(f"{text!r} is not <broker id>-<partition>")
        return cls(int(broker_id), int(partition))


@dataclass(frozen=True, slots=True, order=True)
class BrokerAddress:
    """Where a broker listens: an entry of the broker registry (§3.2)."""

    broker_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.broker_id} at {self.host}:{self.port}"
