"""Packages to grade: the empty hand-out, the model solution, and model solutions with one change."""

from __future__ import annotations

import importlib
import re
import shutil
from pathlib import Path

from classroom.labs.catalogue import LABS
from classroom.labs.lab import Lab

HERE = Path(__file__).parent
WRONG: dict[int, dict[str, list[tuple[str, str]]]] = {
    lab.number: importlib.import_module(f"tests.labs.wrong.lab{lab.number}").WRONG for lab in LABS
}


def empty(lab: Lab, into: Path) -> Path:
    """The holes, as handed out."""
    return Path(shutil.copytree(lab.folder / "package", into / "empty"))


def model(lab: Lab, into: Path) -> Path:
    """The model solution."""
    return Path(shutil.copytree(HERE / "solutions" / f"lab{lab.number}", into / "model"))


def wrong(lab: Lab, mistake: str, into: Path) -> Path:
    """The model solution with one mistake; a change that no longer applies is an error of these tests."""
    package = model(lab, into)
    path = package / f"{lab.module}.py"
    text = path.read_text()
    for old, new in WRONG[lab.number][mistake]:
        assert text.count(old) == 1, f"{mistake}: {text.count(old)} places to change"
        text = text.replace(old, new)
    path.write_text(text)
    return package


def mistakes_in_the_guide(lab: Lab) -> dict[str, set[str]]:
    """Mistake -> the tests that find it, from the table of the teacher's page."""
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \| .+ \|$", (lab.folder / "guide.md").read_text(), re.MULTILINE)
    return {name: set(found_by.split(", ")) for name, found_by in rows if name != "mistake"}
