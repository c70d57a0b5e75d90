"""The model of Algorithm 1: every state visited."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def model() -> ModuleType:
    path = Path(__file__).parents[3] / "docs" / "model" / "explore.py"
    spec = importlib.util.spec_from_file_location("algorithm1_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_no_order_of_steps_breaks_the_sound_edition(model: ModuleType) -> None:
    """In every reachable state no partition has two readers, and at rest each has one (§3.2)."""
    n_states, broken, way = model.explore(model.EDITIONS[2], 3, 3, 4)
    assert (broken, way) == (None, [])
    assert n_states > 5000, "and there was something to visit"


def test_the_figure_is_broken_in_both_known_ways(model: ModuleType) -> None:
    """Whole-number N leaves a partition without a reader; releasing before stopping gives one two readers (§3.2)."""
    assert model.explore(model.EDITIONS[0], 3, 3, 4)[1] == "at rest, a partition has no reader"
    assert model.explore(model.EDITIONS[1], 3, 3, 4)[1] == "two members read one partition"
