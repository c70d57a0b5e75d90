"""Every walk works as printed: its commands run, and they print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.walks.page import blocks, matches, run

WALKS = Path(__file__).resolve().parents[2] / "docs" / "walks"
PAGES = sorted(WALKS.glob("[0-9]-*.md"))
STEPS = ["Break", "Look", "Explain", "Read the code", "Change one thing"]
TWO_SCREENS = 130


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walk_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    """The commands of a walk, pasted in order into an empty directory, print what the walk shows."""
    directory = tmp_path / "walk"
    directory.mkdir()
    text = page.read_text()

    for block, printed in zip(blocks(text), run(text, directory), strict=True):
        if block.shown is not None:
            assert matches(block.shown, printed), (
                f"{page.name}, line {block.line}\n--- commands\n{block.commands}--- shown\n{block.shown}"
                f"--- printed\n{printed}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walk_has_the_five_steps(page: Path) -> None:
    """A walk breaks, looks, explains, names the code and leaves an experiment, names its §, in about two screens."""
    text = page.read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)

    assert [heading.split(":")[0] for heading in headings] == STEPS
    assert re.match(r"# Walk \d: .*\n\n.*§\d", text)
    assert len(text.splitlines()) <= TWO_SCREENS
    assert max(len(line) for line in text.splitlines()) <= 130


@pytest.mark.parametrize("page", sorted(WALKS.glob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a walk names a file of this repository."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_walk_is_listed() -> None:
    """The walks' own page names all ten, in order."""
    listed = re.findall(r"\]\((\d-[^)]+\.md)\)", (WALKS / "README.md").read_text())

    assert listed == [page.name for page in PAGES]
    assert len(PAGES) == 10


def test_the_runner_sees_a_difference() -> None:
    """An ellipsis stands for what varies and for nothing else."""
    shown = "offset …\n…\nthe end\n"

    assert matches(shown, "offset 7\nthe end\n")
    assert matches(shown, "offset 7\nthis\nand that\nthe end\n")
    assert not matches(shown, "offset 7\nthe end\nmore\n")
    assert not matches(shown, "ofset 7\nthe end\n")
