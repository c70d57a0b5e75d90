"""Everything here runs over both walkers of message sets: the pure one and the compiled one (issue 23)."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.walkers import WALKERS, use


@pytest.fixture(params=WALKERS, scope="module", autouse=True)
def walker(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The walker in use."""
    yield from use(request.param)
