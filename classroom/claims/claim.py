"""A claim of the paper, and what a run of its experiment came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a run says about the sentence."""

    HOLDS = "holds"
    FOOTNOTE = "holds with a footnote"
    FAILS = "does not hold"
    UNKNOWN = "could not tell here"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper with everything that was written down before the run."""

    number: str
    section: str
    title: str
    sentence: str
    """The paper's own words, as few as needed."""
    experiment: str
    """What is done, in a sentence or two."""
    threshold: str
    """What the figures must be for the sentence to hold."""
    twist: str
    """How ``--twist`` turns the experiment upside down: then the verdict must change."""
    dissent: str
    """What would change this verdict: another machine, another reading of the sentence, another design."""
    later: str
    """How the same problem is answered today."""
    code: tuple[str, ...]
    tests: tuple[str, ...]
    walk: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with the figure it rests on. ``footnote`` says where the paper rounds or leaves something out."""

    verdict: Verdict
    figure: str
    spread: str = "exact: a count, the same in every run"
    footnote: str = ""


Figures = Mapping[str, Any]
"""What an experiment measured; ready for JSON."""


class CannotTell(Exception):
    """The experiment cannot be done on this machine; the text says why and what it would need."""
