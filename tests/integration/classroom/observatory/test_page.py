"""The page in a real browser, before a real cluster."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from kafka2011.wire.message import Message, encode_message
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import GROUP, PAYLOADS, TOPIC, Watched, replay

PANES = ("overview", "segments", "zookeeper", "ownership", "groups", "brokers", "load", "browse", "faults", "claims")


def settled(browser: Chromium) -> None:
    """Wait until the ownership pane shows both consumers with one partition each."""
    browser.wait(
        "['consumer-0', 'consumer-1'].every((name) => [...document.querySelectorAll('.now tr')]"
        ".some((row) => row.cells[0].innerText === name && row.cells[1].innerText === '1'))",
        "both consumers own a partition",
    )


def test_every_pane_is_drawn_without_a_complaint_and_nothing_leaves_the_host(
    browser: Chromium, watched: Watched
) -> None:
    """The page works offline: every pane by its key, no console error, no request to another host."""
    browser.open(f"{watched.page}#ownership?group={GROUP}")
    settled(browser)
    for number, pane in enumerate(PANES, 1):
        browser.press(str(number % 10))
        browser.wait(f"document.querySelector('#pane').dataset.drawn === '{pane}'", f"{pane} is drawn")
        assert browser.js("document.querySelector('#pane h2') !== null"), pane
        assert browser.js("document.documentElement.scrollWidth <= innerWidth"), f"{pane} is wider than the window"
    browser.open(f"{watched.page}#zookeeper")
    browser.wait(f"document.querySelector('#tree').textContent.includes('{GROUP}')", "the registries are shown")

    assert browser.complaints == []
    assert {url for url in browser.requested if not url.startswith((watched.page, "about:"))} == set()


def test_a_message_is_shown_byte_by_byte(browser: Chromium, watched: Watched) -> None:
    """Browsing shows a message's bytes as they are on disk, and the next offset as a sum (§3.1)."""
    entry = encode_message(Message(PAYLOADS[0]))
    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-0&from=begin")
    browser.wait("document.querySelector('#hex') !== null", "the message is taken apart")

    assert browser.js("document.querySelector('#hex').textContent") == entry.hex()
    assert browser.text("#sum").startswith(f"0 + 4 + {len(entry) - 4} = {len(entry)} ")
    assert '"page": "/home"' in browser.text("#anatomy pre")

    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-1&from=~{len(entry) + 3}")
    expected = f"The message at {len(entry)}, byte by byte"
    browser.wait(f"document.querySelector('#anatomy h3')?.innerText === {json.dumps(expected)}", "the one around it")


def test_a_word_of_the_paper_is_explained_where_it_stands(browser: Chromium, watched: Watched) -> None:
    """Issue 24 point 7: a heading that names one of the paper's words gets a tooltip when the mouse comes over it."""
    browser.open(f"{watched.page}#ownership?group={GROUP}")
    browser.wait("document.querySelector('#pane h2') !== null", "the pane is drawn")
    label = "document.querySelector('#topic-choice')"
    browser.wait(
        f"({label}.dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }})), "
        f"{label}.title.startsWith('topic: a stream'))",
        "the word is explained",
    )


def test_a_consumer_killed_through_the_page_is_replaced_and_the_run_replays(
    browser: Chromium, watched: Watched, tmp_path: Path
) -> None:
    """Kill a consumer on the page: its lane ends, the other takes over, as promised beforehand (§3.2); the saved run
    shows the same without a cluster."""
    for consumer in watched.cluster.processes.of_kind("consumer"):
        watched.cluster.start(consumer)
    browser.open(f"{watched.page}#ownership?group={GROUP}")
    settled(browser)
    browser.press("9")
    browser.wait("document.querySelector('#target-kill-consumer')?.options.length === 2", "both can be chosen")
    browser.js("document.querySelector('#target-kill-consumer').value = 'consumer-0'")
    browser.click("#do-kill-consumer")
    browser.wait("document.querySelector('#seen').innerText.includes('as promised: 1 partition(s)')", "it is replaced")
    assert not watched.cluster.processes.of_kind("consumer")[0].running

    browser.press("4")
    taken_over = (
        "document.querySelector('#lanes')?.textContent.includes('consumer-0 (gone)') && "
        "[...document.querySelectorAll('.now tr')].some((row) => row.cells[0].innerText === 'consumer-1'"
        " && row.cells[1].innerText === '2')"
    )
    browser.wait(taken_over, "the lane of the other has both partitions")
    browser.wait("document.querySelector('#pane').innerText.includes('consumer-0 is gone')", "the reason is told")

    recording = tmp_path / "run.k2011.jsonl"
    with urllib.request.urlopen(f"{watched.page}api/recording", timeout=30) as answer:
        recording.write_bytes(answer.read())
    strip = "document.querySelector('#when')"
    for address in replay(tmp_path, recording):
        browser.open(f"http://{address}/#ownership")
        browser.wait(taken_over, "the replay ends where the run ended")
        assert browser.text("#connection") == "a recorded run"
        browser.js(f"{strip}.value = {strip}.min; {strip}.dispatchEvent(new Event('input'))")
        browser.wait("!document.querySelector('#pane').innerText.includes('(gone)')", "the beginning is shown")
        browser.click("#play")
        browser.wait(f"Number({strip}.value) > Number({strip}.min)", "time goes on")
    assert browser.complaints == []
