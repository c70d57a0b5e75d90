"""What every test may use. Fixtures of one area live in that area's own conftest.py."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

MOST_UNSURE = 5
"""So many tests may have a second try, each with its reason beside it; one more fails the run."""

# The same examples every time, and no clock decides: a property test is never flaky on a busy machine.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# Fresh examples from the seed that `make fuzz` prints, many of them.
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, max_examples=2000, database=None)
settings.load_profile(os.environ.get("KAFKA2011_HYPOTHESIS", "house"))


def pytest_configure(config: pytest.Config) -> None:
    """Declare the one mark of our own."""
    config.addinivalue_line("markers", "unsure(reason): may be tried again, because of what the reason names")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test that cannot be made sure, and says why, two more tries; refuse a suite with many of them."""
    unsure = {}
    for item in items:
        mark = item.get_closest_marker("unsure")
        if mark is None:
            continue
        if not mark.args or not str(mark.args[0]).strip():
            raise pytest.UsageError(f"{item.nodeid}: unsure(...) names its reason")
        unsure[item.nodeid.partition("[")[0]] = mark.args[0]
        item.add_marker(pytest.mark.flaky(reruns=2))
    if len(unsure) > MOST_UNSURE:
        raise pytest.UsageError(f"{len(unsure)} tests are marked unsure, at most {MOST_UNSURE} may: {sorted(unsure)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what passed only on a second try: each is a defect to look into, not a success."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.write_line(f"needed another try: {report.nodeid}", yellow=True)
