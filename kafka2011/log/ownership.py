"""Whose a data directory is: what others planted in it must not be served, what is stored must not be theirs to change.

A directory that somebody else made beforehand (in a place where anybody may make one), or that somebody else can write
to, is refused. ``log.dir.allow.shared`` overrides that, for volumes whose owner a container cannot choose.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from kafka2011.errors import ConfigError

_OVERRIDE = "or allow it with log.dir.allow.shared=true"


def check_ownership(directory: Path) -> None:
    """Raise ConfigError if ``directory``, or what lies in it, belongs to others or can be written by them.

    A directory that does not exist yet is fine: it will be made for this user only.
    """
    if not directory.is_dir():
        return
    facts = directory.stat()
    _check_owner(directory, facts)
    others = facts.st_mode & stat.S_IWOTH or (facts.st_mode & stat.S_IWGRP and not _is_own_group(facts.st_gid))
    if others:
        mode = stat.S_IMODE(facts.st_mode)
        raise ConfigError(
            f"log.dir {directory} can be written by others (mode {mode:04o}): what they put there would be served. "
            f"Look into it, then close it with: chmod 700 {directory}; {_OVERRIDE}"
        )
    with os.scandir(directory) as entries:
        for entry in entries:
            _check_owner(Path(entry.path), entry.stat(follow_symlinks=False))


def _check_owner(path: Path, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} in log.dir belongs to another user (uid {facts.st_uid}, we are {os.geteuid()}): "
            f"choose a log.dir of your own, {_OVERRIDE}"
        )


def _is_own_group(gid: int) -> bool:
    """Whether the group is this user's alone, as many systems give each user one: then nobody else can write."""
    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}
