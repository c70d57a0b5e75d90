"""A pytest plug-in for ``make sanitize``: the tests walk with the extensions that ``KAFKA2011_SANITIZED`` names."""

from __future__ import annotations

import os

from tests.sanitize import load

for one in os.environ["KAFKA2011_SANITIZED"].split():
    name, _, path = one.partition("=")
    load(path, name)
