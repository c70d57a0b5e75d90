"""Damage in the middle of a log: what was set aside, and taking appends again once somebody has said so.

A log that lost its end to damage is readable up to there. It takes no appends, over restarts too, because records
would get offsets that others had before, until the damage is accepted (``kafka2011 log accept``): the files stay, under
another name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kafka2011.log.directory import sync_directory

_DAMAGED = re.compile(r"(\d{20}\.log)\.damaged(\d*)\Z")


def damaged_files(directory: Path) -> list[str]:
    """The files of a partition that were set aside and not accepted yet."""
    return sorted(name for name in os.listdir(directory) if _DAMAGED.match(name))


def accept_damage(directory: Path) -> list[str]:
    """Let a partition that is not open take appends again; what was accepted, for people."""
    told = []
    for name in damaged_files(directory):
        found = _DAMAGED.match(name)
        assert found is not None
        accepted = f"{found[1]}.accepted{found[2]}"
        os.rename(directory / name, directory / accepted)
        told.append(f"{directory.name}: the records in {accepted} are not part of the log any more")
    if told:
        sync_directory(directory)
    return told
