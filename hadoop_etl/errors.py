"""What can go wrong in a load, each with what to do next.

    LoadError
    ├── RetentionGap        the brokers no longer hold what the table expects next
    ├── AnotherLog          a partition's log is not the one that was loaded before
    ├── UnknownTopic        no broker has it and no table: a typing error?
    ├── PlanChanged         a saved plan does not fit the world any more
    ├── TilingBroken        splits do not meet: a cut was no message boundary      retried with safe cuts
    ├── LoadSuperseded      another load committed in between                      run again
    ├── TooManyDead         more undecodable messages than allowed
    ├── LoadLocked          another load runs
    └── CannotRewind        files of the wanted version are gone
"""

from __future__ import annotations

from typing import ClassVar

from kafka2011.errors import Kafka2011Error


class LoadError(Kafka2011Error):
    """Base of the load's errors. Nothing was committed unless the sentence says so."""


class RetentionGap(LoadError):
    """Offsets between the table's end and the brokers' first were deleted before they were loaded."""


class AnotherLog(LoadError):
    """The offsets of the table belong to another log."""


class UnknownTopic(LoadError):
    """A topic was named that nobody knows."""


class PlanChanged(LoadError):
    """The plan cannot be executed as written."""


class TilingBroken(LoadError):
    """A split did not end where the next begins."""

    retriable: ClassVar[bool] = True


class LoadSuperseded(LoadError):
    """The table's offsets moved while this load ran."""

    retriable: ClassVar[bool] = True


class TooManyDead(LoadError):
    """The share of undecodable messages is over the limit."""


class LoadLocked(LoadError):
    """Another load holds the lock of this warehouse."""

    retriable: ClassVar[bool] = True
    exit_code: ClassVar[int] = 4


class CannotRewind(LoadError):
    """The wanted version cannot be brought back."""


class WarehouseError(LoadError):
    """The warehouse holds something else than this load's tables, or nothing."""
