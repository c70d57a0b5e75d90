"""The walker of message sets in use: ``_walk.c`` where it was compiled, else ``pure``; both do the same.

``KAFKA2011_PURE=1`` in the environment asks for the pure one. ``kafka2011 --version`` says which it is.
Callers name the functions through this module (``walk.check(...)``), so that tests can run over both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka2011.wire import pure

if TYPE_CHECKING:
    from types import ModuleType

try:
    from kafka2011.wire import _walk as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]  # no compiler was there when this was installed
else:
    if getattr(compiled, "VERSION", 0) != pure.VERSION:
        compiled = None  # type: ignore[assignment]  # it was built from an older file: install again


is_compiled = compiled is not None and os.environ.get("KAFKA2011_PURE", "") in ("", "0")
_chosen: ModuleType = compiled if is_compiled else pure

takes_views = is_compiled
"""Whether memoryviews may be given for bytes. Slices of bytes are what makes the pure one quick."""

Hand = pure.Hand if TYPE_CHECKING else _chosen.Hand
Row = pure.Row
check = pure.check if TYPE_CHECKING else _chosen.check
cut = pure.cut if TYPE_CHECKING else _chosen.cut
encode = pure.encode if TYPE_CHECKING else _chosen.encode
split = pure.split if TYPE_CHECKING else _chosen.split
