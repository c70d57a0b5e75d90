"""A pytest plug-in for ``make sanitize``: the tests walk with the extension that ``KAFKA2011_WALK`` names."""

from __future__ import annotations

import os

from tests.sanitize import load

load(os.environ["KAFKA2011_WALK"])
