"""A report for the student's terminal, for a file, and one line of a class list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classroom.labs.grading import Outcome, Report
from classroom.labs.lab import Lab

_SAID_LINES = 8


def line(outcome: Outcome) -> str:
    """One test: passed or not, points, and what went wrong."""
    mark = "ok  " if outcome.passed else "FAIL"
    text = f"{mark} {outcome.points:3}/{outcome.test.points:<3} {outcome.test.name.replace('_', ' ')}"
    return text if outcome.passed else f"{text}\n             {outcome.reason}"


def first_failure(report: Report) -> str:
    """The first failed test in full: what it promises, what happened, what the program printed."""
    outcome = report.failures[0]
    parts = [f"The first test that fails: {outcome.test.name}", f"  it says: {outcome.test.title}"]
    parts.append(f"  it saw:  {outcome.reason}")
    if outcome.said.strip():
        printed = outcome.said.strip().splitlines()[-_SAID_LINES:]
        parts += ["  your program printed:", *(f"    | {text}" for text in printed)]
    return "\n".join(parts)


def total(report: Report, of: int) -> str:
    """The last line."""
    return f"{report.points} of {of} points, {report.seconds:.1f} s, seed {report.seed}"


def as_json(report: Report) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "lab": report.lab.number,
        "student": report.student,
        "seed": report.seed,
        "points": report.points,
        "of": report.lab.points,
        "seconds": round(report.seconds, 2),
        "refused": list(report.refused),
        "tests": [
            {
                "name": outcome.test.name,
                "seen": outcome.test.seen,
                "points": outcome.points,
                "of": outcome.test.points,
                "passed": outcome.passed,
                "reason": outcome.reason,
                "seconds": round(outcome.seconds, 2),
                "replays": sorted(outcome.replays),
            }
            for outcome in report.outcomes
        ],
    }


def keep_replays(report: Report, into: Path) -> list[Path]:
    """Write the transcripts and pictures of failed tests where the student finds them; their paths."""
    kept = []
    for outcome in report.failures:
        for name, text in outcome.replays.items():
            path = into / "replays" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            kept.append(path)
    return kept


def row(lab: Lab) -> dict[str, object]:
    """A lab in ``kafka2011 lab list``."""
    seen = sum(test.points for test in lab.seen())
    return {
        "lab": lab.number,
        "title": lab.title,
        "paper": f"§{lab.section}",
        "hours": lab.hours,
        "points": lab.points,
        "seen": seen,
        "you_write": f"{lab.module}.py",
    }
