"""Fail a test whose cluster left errors unhandled, as ``BrokerProcess`` does for a single broker (issue 19 A2)."""

from __future__ import annotations

from pathlib import Path

from kafka2011.testing import unhandled_errors


def check_cluster(directory: Path) -> None:
    """Look at what the brokers of a ``kafka2011 cluster`` (or demo) in ``directory`` have written."""
    found = {
        path.name: unhandled_errors(path.read_text(errors="replace"))
        for path in sorted((directory / "logs").glob("broker-*.log"))
    }
    assert not any(found.values()), found
