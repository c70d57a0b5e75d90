"""Names of the files of a partition, and writing a small file whole.

A file's name is the offset of its segment's first record, twenty digits, and a suffix that says what is in it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kafka2011.failpoints import fail_point
from kafka2011.log.directory import sync_directory

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
_NAME = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?\Z")


def file_name(base_offset: int, suffix: str) -> str:
    """``00000000000000000042.log``."""
    return f"{base_offset:020d}{suffix}"


def parse_name(name: str) -> tuple[int, str, str] | None:
    """Offset, kind and state ("" or a suffix such as ``.deleted``) of a segment's file; None for any other name."""
    found = _NAME.match(name)
    return None if found is None else (int(found[1]), found[2], found[3] or "")


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace a small file: after a crash it is the old one or the new one, never half of either.

    Without ``sync`` that holds for a killed process, not for a power cut.
    """
    draft = path.with_name(path.name + ".tmp")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            file.write(data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    fail_point("modern.write_whole.before_rename")
    os.replace(draft, path)
    if sync:
        sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Force a file that somebody wrote to disk; nothing if it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
