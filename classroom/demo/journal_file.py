"""A journal that is also a file: one JSON line per event, for the page to follow."""

from __future__ import annotations

import os
from pathlib import Path

from kafka2011.events import Entry, Journal


def journal_to(path: Path) -> Journal:
    """A journal whose entries are appended to ``path``, each with one write, so a kill cuts at most one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    journal = Journal()

    def write(entry: Entry) -> None:
        os.write(file, entry.as_json().encode() + b"\n")

    journal.subscribe(write)
    return journal
