"""axe-core over every pane, as the browser draws it. Issue 22 B6."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from classroom.observatory.frames import save
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import TOPIC, Watched, replay
from tests.integration.classroom.observatory.test_page import PANES
from tests.unit.classroom.observatory.scenes import film, frame

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE = "KAFKA2011_AXE"
"""A newer axe.min.js than that of the package, if one wants to look with it."""


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core."""
    if os.environ.get(AXE):
        return Path(os.environ[AXE]).read_text()
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed: pip install axe-core-python")
    return (Path(found.origin).parent / "axe.min.js").read_text()


@pytest.fixture(params=["light", "dark"])
def theme(browser: Chromium, request: pytest.FixtureRequest) -> Iterator[str]:
    """Both sets of colours, as the reader's machine asks for them."""
    scheme = [{"name": "prefers-color-scheme", "value": request.param}]
    browser.call("Emulation.setEmulatedMedia", features=scheme)
    yield request.param
    browser.call("Emulation.setEmulatedMedia", features=[])


def findings(browser: Chromium, axe: str) -> list[str]:
    """What axe-core finds on the page as it is drawn now: rule, place and what to do."""
    if not browser.js("'axe' in window"):
        browser.js(f"{axe}; true")
    found = browser.js(f"axe.run({{runOnly: {json.dumps(LEVELS)}}}).then((all) => JSON.stringify(all.violations))")
    return [
        f"{rule['id']}: {node['html'][:120]}: {node['failureSummary']}"
        for rule in json.loads(found)
        for node in rule["nodes"]
    ]


def test_no_pane_keeps_anybody_out(browser: Chromium, watched: Watched, axe: str, theme: str) -> None:
    """Issue 22 B6: no finding of level A or AA in any pane of a live cluster, with its tools, in both themes."""
    browser.open(f"{watched.page}#overview")
    for number, pane in enumerate(PANES, 1):
        browser.press(str(number % 10))
        browser.wait(f"document.querySelector('#pane').dataset.drawn === '{pane}'", f"{pane} is drawn")
        if pane == "browse":
            browser.wait("document.querySelector('#hex') !== null", "a message is shown")
        assert findings(browser, axe) == [], pane


def test_neither_does_the_tour(browser: Chromium, watched: Watched, axe: str, theme: str) -> None:
    """Issue 22 B6, B4: the same for the tour's card over the picture."""
    browser.open(f"{watched.page}#overview?tour=0")
    browser.wait("document.querySelector('#tour-next') !== null", "the tour begins")

    assert findings(browser, axe) == []


def test_neither_do_the_pages_behind_the_links(browser: Chromium, watched: Watched, axe: str, theme: str) -> None:
    """Issue 22 B6, B7: code is readable for everybody, too."""
    for path in ("source/kafka2011.log.segment_list?back=segments", "paper?back=segments"):
        browser.open(watched.page + path)
        assert findings(browser, axe) == [], path


def test_an_outage_is_readable_too(browser: Chromium, tmp_path: Path, axe: str, theme: str) -> None:
    """Issue 22 B6: what is red in Ownership, Segments and Groups has enough contrast, and marks can be reached."""
    owners = {"0-0": "ada", "0-1": "bob"}
    struck = [{"t": 2000, "title": "Kill a consumer", "target": "ada"}]
    away = frame(9000, owners, not_reading={"ada": "dead"})
    away["brokers"] = {"0": away["brokers"]["0"] | {"alive": False}}
    recording = tmp_path / "run.jsonl"
    dead = frame(2000, owners, not_reading={"ada": "dead"}, struck=struck)
    recording.write_bytes(b"".join(save(film(frame(1000, owners), dead, away))))
    for address in replay(tmp_path, recording):
        for pane in ("overview", "segments", "ownership", "groups"):
            browser.open(f"http://{address}/#{pane}?topic={TOPIC}")
            assert findings(browser, axe) == [], pane


def test_axe_finds_what_it_should(browser: Chromium, watched: Watched, axe: str) -> None:
    """The control: a picture without words and grey on grey are found."""
    browser.open(f"{watched.page}#overview")
    browser.js(
        "const words = document.createElement('p'); words.textContent = 'hardly to be read';"
        "Object.assign(words.style, {color: '#999', background: '#aaa'});"
        "document.querySelector('header').append(new Image(), words)"
    )

    assert {found.partition(":")[0] for found in findings(browser, axe)} == {"image-alt", "color-contrast"}
