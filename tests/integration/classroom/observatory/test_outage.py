"""What the page draws while nobody reads, in a real browser, from a recorded run. Issue 22 B1, B9, B12, B14."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from classroom.observatory.frames import save
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import replay
from tests.integration.classroom.observatory.test_page import PANES
from tests.unit.classroom.observatory.scenes import film, frame

OWNERS = {"0-0": "ada", "0-1": "bob"}


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A run in which a consumer dies and later the broker goes; the address of its page."""
    directory: Path = tmp_path_factory.mktemp("outage")
    away = frame(9000, {"0-0": "bob", "0-1": "bob"})
    away["brokers"] = {"0": away["brokers"]["0"] | {"alive": False}}
    seen = film(
        frame(1000, OWNERS),
        frame(2000, OWNERS, not_reading={"ada": "dead"}),
        frame(7000, OWNERS, not_reading={"ada": "dead"}),
        frame(8000, {"0-0": "bob", "0-1": "bob"}),
        away,
    )
    recording = directory / "run.jsonl"
    recording.write_bytes(b"".join(save(seen)))
    yield from replay(directory, recording)


def test_the_strips_of_a_dead_consumer_are_hatched_and_say_why(browser: Chromium, outage: str) -> None:
    """Issue 22 B1: owned by the dead is drawn as what it is, with the words on it."""
    browser.open(f"http://{outage}/#ownership?group=g&at=7000")
    browser.wait("document.querySelector('#lanes .span.dead') !== null", "the outage is drawn")

    assert browser.js("document.querySelector('#lanes .span.dead').getAttribute('fill')") == "url(#unread)"
    assert "ada (dead)" in browser.js("document.querySelector('#lanes').textContent")
    words = browser.js("document.querySelector('#lanes .note').textContent")
    assert words == "dead, still registered until its session ends"
    assert "still registered until its session ends" in browser.text(".now")


def test_the_partitions_of_a_gone_broker_do_not_look_alive(browser: Chromium, outage: str) -> None:
    """Issue 22 B12: in Segments and in the lanes what nobody can read is red, and is said to be so."""
    browser.open(f"http://{outage}/#segments?topic=clicks")
    browser.wait("document.querySelector('#unreadable') !== null", "the broker is seen to be gone")

    assert browser.text("#unreadable") == "Broker 0 is gone: 0-0, 0-1 cannot be read until it is back."
    assert browser.js("document.querySelectorAll('#segments-picture .segment:not(.unreadable)').length") == 0
    browser.press("4")
    browser.wait("document.querySelector('#lanes .span.broker-gone') !== null", "the lanes have a gap")


def test_a_pane_begins_at_its_top_and_is_found_again_as_it_was_left(browser: Chromium, outage: str) -> None:
    """Issue 22 B14: changing panes neither shows the middle of the next one nor loses one's place in this one."""
    browser.open(f"http://{outage}/#segments")
    browser.js("document.querySelector('#pane').style.minHeight = '4000px'; scrollTo(0, 700)")
    browser.press("5")
    browser.wait("document.querySelector('#pane').dataset.drawn === 'groups' && scrollY === 0", "the top of Groups")
    browser.press("2")
    browser.wait("document.querySelector('#pane').dataset.drawn === 'segments' && scrollY === 700", "where one was")
    assert browser.complaints == []


@pytest.mark.parametrize("width", [390, 1920])
def test_no_pane_is_wider_than_the_window(browser: Chromium, outage: str, width: int) -> None:
    """Issue 22 B6: on a phone and on a projector nothing is cut off, and nothing has to be pushed sideways."""
    metrics = {"height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=width, **metrics)
    browser.open(f"http://{outage}/#segments")
    for key, pane in enumerate(PANES, 1):
        browser.press(str(key % 10))
        browser.wait(f"document.querySelector('#pane').dataset.drawn === '{pane}'", f"{pane} is drawn")
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), pane
    lines = "new Set([...document.querySelectorAll('#tabs a')].map((tab) => tab.getBoundingClientRect().top)).size"
    assert browser.js(lines) == 1, "the tabs are one row"
    assert browser.js("document.querySelector('#clock').getBoundingClientRect().right <= innerWidth"), "it is cut"
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, **metrics)
