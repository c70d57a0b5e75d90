"""What every test may use. Fixtures of one area live in that area's own conftest.py. No test gets a second try."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples every time, and no clock decides: a property test is never flaky on a busy machine.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# Fresh examples from the seed that `make fuzz` prints, many of them.
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, max_examples=2000, database=None)
settings.load_profile(os.environ.get("KAFKA2011_HYPOTHESIS", "house"))
