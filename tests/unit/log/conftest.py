"""A data directory with a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.log import LogSettings, LogStore
from kafka2011.wire import encode_set

ENTRY = encode_set([b"ab"])
"""One message of 12 bytes, as in the fact sheet's worked example (docs/log.md)."""

OpenStore = Callable[..., LogStore]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_store(tmp_path: Path, clock: ManualClock) -> Iterator[OpenStore]:
    """Open the test's data directory with the settings given; closed at the end of the test."""
    opened: list[LogStore] = []

    def open_(**settings: object) -> LogStore:
        store = LogStore(tmp_path / "data", LogSettings(**settings), clock=clock)  # type: ignore[arg-type]
        store.open()
        opened.append(store)
        return store

    yield open_
    for store in opened:
        store.close()
