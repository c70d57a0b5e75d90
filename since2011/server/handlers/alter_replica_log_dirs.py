"""AlterReplicaLogDirs: which directory the log of a partition is to lie in. It stays where it was made.

Behavior:
- The directory it lies in already: nothing to do, and no error. One that this broker has not: LOG_DIR_NOT_FOUND.
- Another one of this broker, or a partition without a log: REPLICA_NOT_AVAILABLE. Logs do not move between directories.

Version notes:
- 2 flexible.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def alter_replica_log_dirs(modern: ModernBroker, call: Call) -> Struct:
    """Answer for each partition."""
    results = [
        Struct(
            topic_name=topic.name,
            partitions=[
                Struct(partition_index=index, error=_error(modern, one.path, topic.name, index))
                for index in topic.partitions
            ],
        )
        for one in call.body.dirs
        for topic in one.topics
    ]
    return Struct(results=results)


def _error(modern: ModernBroker, path: str, topic: str, index: int) -> ErrorCode:
    manager = modern.logs.manager
    if path not in {str(directory.path) for directory in manager.directories}:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        log = modern.topics.led(topic, index).log
    except Kafka2011Error as error:
        return refusal(error)[0]
    if log is None or log.directory.parent != Path(path):
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE
