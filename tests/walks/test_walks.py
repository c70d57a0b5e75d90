"""Every walk works as printed: its commands run and print what the page shows; and pages point at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.walks.page import FENCE, blocks, matches, run

ROOT = Path(__file__).resolve().parents[2]
WALKS = ROOT / "docs" / "walks"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OURS = "kafka2011|zk_registry|since2011|consumers|hadoop_etl"
PAGES = sorted(WALKS.glob("[0-9]*-*.md"), key=lambda page: int(page.name.partition("-")[0]))
STEPS = ["Break", "Look", "Explain", "Read the code", "Change one thing"]
TWO_SCREENS = 135
SCREEN_WIDTH = 140


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
    assert re.match(r"# Walk \d+: .*\n\n.*§\d", text)
    assert len(text.splitlines()) <= TWO_SCREENS
    assert max(len(line) for line in re.sub(r"\]\([^)]*\)", "]", text).splitlines()) <= SCREEN_WIDTH


@pytest.mark.parametrize("page", [*WALKS.glob("*.md"), *DOCUMENTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file of this repository."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_imports_on_a_page_work(page: Path) -> None:
    """What a page's Python imports from this project can be imported."""
    for kind, body in FENCE.findall(page.read_text()):
        ours = re.findall(rf"^ *(from (?:{OURS})\b.* import .*)$", body, re.MULTILINE) if kind == "python" else []
        for line in ours:
            exec(line, {})


def test_every_walk_is_listed() -> None:
    """The walks' own page names them all, in order."""
    listed = re.findall(r"\]\((\d+-[^)]+\.md)\)", (WALKS / "README.md").read_text())

    assert listed == [page.name for page in PAGES]
    assert len(PAGES) == 17


def test_the_runner_sees_a_difference() -> None:
    """An ellipsis stands for what varies and for nothing else."""
    shown = "offset …\n…\nthe end\n"

    assert matches(shown, "offset 7\nthe end\n")
    assert matches(shown, "offset 7\nthis\nand that\nthe end\n")
    assert not matches(shown, "offset 7\nthe end\nmore\n")
    assert not matches(shown, "ofset 7\nthe end\n")
