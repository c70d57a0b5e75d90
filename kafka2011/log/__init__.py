"""The log: segment files, flush, visibility, retention, recovery.

Paper: §3.1 (Simple storage, Stateless broker), §3.3 (CRC). The files are Kafka 0.7's.
"""

from __future__ import annotations

from kafka2011.log.log import FileSlice, Log, SegmentInfo
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore

__all__ = ["FileSlice", "Log", "LogSettings", "LogStore", "SegmentInfo"]
