"""The states of a transactional producer, and a call of the application that waits for one of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from since2011.producer.errors import FatalError, SendError


class State(Enum):
    """Where a transactional producer is."""

    NEW = auto()
    INITIALIZING = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()
    MUST_ABORT = auto()
    FAILED = auto()


class Wrong(FatalError):
    """A call that does not fit the state: a mistake of the program, and without effect."""

    definite = True


@dataclass(slots=True, eq=False)
class Call:
    """A call of the application that takes the sender's work."""

    name: str
    done: bool = False
    error: SendError | None = None
