"""Benchmarks are not type-checked: at least they must fit the code they measure."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import benchmarks

MODULES = [
    module.name
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_benchmark_can_be_imported(name: str) -> None:
    """A module that moved is missed here, not on the day somebody measures (issue 25)."""
    importlib.import_module(name)
