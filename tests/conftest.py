"""What every test may use. Fixtures of one area live in that area's own conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, and no clock decides: a property test is never flaky on a busy machine.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

_REAL = ("integration", "interop", "paper", "unit", "walks")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests with processes, sockets or threads another try on a busy machine; the summary names them."""
    for item in items:
        if Path(str(item.fspath)).relative_to(Path(__file__).parent).parts[0] in _REAL:
            item.add_marker(pytest.mark.flaky(reruns=2))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what passed only on a second try: each is a defect to look into, not a success."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.write_line(f"needed another try: {report.nodeid}", yellow=True)
