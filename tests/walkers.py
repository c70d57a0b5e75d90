"""The two walkers of message sets, for tests that run over both."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from kafka2011.wire import pure, walk

WALKERS = [
    pytest.param(pure, id="pure"),
    pytest.param(
        walk.compiled,
        id="compiled",
        marks=pytest.mark.skipif(walk.compiled is None, reason="the extension kafka2011.wire._walk was not compiled"),
    ),
]


def use(walker: ModuleType) -> Iterator[ModuleType]:
    """Let everything walk message sets with ``walker`` until the test ends."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("Hand", "check", "cut", "encode", "split"):
            patch.setattr(walk, name, getattr(walker, name))
        patch.setattr(walk, "takes_views", walker is not pure)
        yield walker
