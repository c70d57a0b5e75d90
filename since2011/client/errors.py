"""What a group may refuse a member.

See docs/group-protocol.md.
"""

from __future__ import annotations

from kafka2011.errors import Kafka2011Error
from since2011.wire.error_codes import ErrorCode

MOVED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Ask again who the coordinator is, and ask that one."""

REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class GroupError(Kafka2011Error):
    """The coordinator refused; ``error`` says why."""

    def __init__(self, what: str, error: int, hint: str = "") -> None:
        self.error = ErrorCode(error) if error in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
        super().__init__(f"{what} was refused: {self.error.name.lower()} ({error}){'; ' + hint if hint else ''}")


class CommitRefused(GroupError):
    """Offsets were not stored: the partitions belong to somebody else by now, or are about to."""

    retriable = True


class CommitNotStored(Kafka2011Error):
    """Offsets were not stored, or it is not known; nothing is lost, a later commit makes up for it."""

    retriable = True
    definite = False
