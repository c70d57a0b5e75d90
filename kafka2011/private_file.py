"""Files that hold a secret: read only if nobody else can."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kafka2011.errors import ConfigError


def read_private(setting: str, path: Path) -> bytes:
    """The bytes of a file that only its owner can read; ``setting`` names it in errors.

    The rule is PostgreSQL's: owned by this user and closed to all others, or owned by root and at most readable by
    the group (that is how containers are handed secrets).
    """
    try:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            _check(setting, path, facts)
            return file.read()
    except OSError as error:
        raise ConfigError(f"{setting} {path} cannot be read: {error.strerror}") from error


def _check(setting: str, path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        return  # a pipe from the shell, as in <(…), is as private as whoever made it wants it
    if facts.st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"{setting} {path} belongs to another user (uid {facts.st_uid}); make a file of your own")
    open_to_others = facts.st_mode & (0o037 if facts.st_uid == 0 != os.geteuid() else 0o077)
    if open_to_others:
        mode = stat.S_IMODE(facts.st_mode)
        raise ConfigError(f"{setting} {path} is open to others (mode {mode:04o}); close it with: chmod 600 {path}")
