"""What happens to groups and their offsets beside the coordinator's own events, told once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from kafka2011.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsNotFlushed(Event):
    """The disk refused a flush of the offsets log: commits to that partition fail until a restart."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsRead(Event):
    """This broker speaks for the groups of a partition of the offsets topic from now on."""

    partition: int
    n_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsNotRead(Event):
    """A partition of the offsets topic cannot be read: its groups are told 15 until that is mended."""

    level: ClassVar[int] = logging.ERROR
    partition: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OldOffsetsAdopted(Event):
    """Offsets of release 1.1, which had a log of their own, are in the offsets topic now."""

    n_groups: int
    n_offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldOffsetsLeft(Event):
    """Offsets of release 1.1 that lie here belong to groups other brokers speak for: `kafka2011 offsets adopt` them."""

    level: ClassVar[int] = logging.WARNING
    directory: str
    n_groups: int
