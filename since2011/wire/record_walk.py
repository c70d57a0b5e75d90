"""The walker of records in use: ``_records.c`` where it was compiled, else ``pure_records``; both do the same.

``KAFKA2011_PURE=1`` in the environment asks for the pure one, as in ``kafka2011.wire.walk``.
Callers name the function through this module (``record_walk.walk_records(...)``), so that tests can run over both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from since2011.wire import pure_records

try:
    from since2011.wire import _records as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]  # no compiler was there when this was installed
else:
    if getattr(compiled, "VERSION", 0) != pure_records.VERSION:
        compiled = None  # type: ignore[assignment]  # it was built from an older file: install again

CREATE_TIME = pure_records.CREATE_TIME
is_compiled = compiled is not None and os.environ.get("KAFKA2011_PURE", "") in ("", "0")
if TYPE_CHECKING:
    lay_records, murmur2, walk_records = pure_records.lay_records, pure_records.murmur2, pure_records.walk_records
else:
    _chosen = compiled if is_compiled else pure_records
    lay_records, murmur2, walk_records = _chosen.lay_records, _chosen.murmur2, _chosen.walk_records
