"""DescribeLogDirs: the directories of modern logs on this broker, with the size of each partition in them.

Behavior:
- Null asks for all topics. A directory that has failed is answered with KAFKA_STORAGE_ERROR and without partitions.

Version notes:
- 2 flexible; 3 an error for the whole answer; 4 how large the disk is and how much of it is free.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from since2011.log.log import ModernLog
from since2011.log.log_directory import LogDirectory
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def describe_log_dirs(modern: ModernBroker, call: Call) -> Struct:
    """Every directory."""
    asked = None
    if call.body.topics is not None:
        asked = {(topic.topic, index) for topic in call.body.topics for index in topic.partitions}
    manager = modern.logs.manager
    logs = [log for log in manager.logs() if asked is None or (log.topic, log.partition) in asked]
    rows = [_directory(one, [log for log in logs if log.directory.parent == one.path]) for one in manager.directories]
    return Struct(error=ErrorCode.NONE, results=rows)


def _directory(directory: LogDirectory, logs: list[ModernLog]) -> Struct:
    path = str(directory.path)
    if directory.failed is not None:
        return Struct(error=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=[])
    topics: dict[str, list[Struct]] = {}
    for log in logs:
        row = Struct(partition_index=log.partition, partition_size=log.size, offset_lag=0, is_future_key=False)
        topics.setdefault(log.topic, []).append(row)
    try:
        disk = shutil.disk_usage(directory.path)
    except OSError:
        return Struct(error=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=[])
    return Struct(
        error=ErrorCode.NONE,
        log_dir=path,
        topics=[Struct(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )
