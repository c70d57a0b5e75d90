"""What happens to topics on the modern port, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.broker.events import Frequent


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsRefused(Frequent):
    """Somebody asks for more topics than this broker may hold, or for too many at once."""

    level: ClassVar[int] = logging.WARNING
    peer: str
    n_topics: int
    reason: str
