"""What one does on the page, in a real browser before a real cluster. Issue 22 B2, B4, B8."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from consumers.admin import Groups
from kafka2011.client import BrokerConnection
from kafka2011.types import BrokerPartition
from kafka2011.wire import decode_set
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import PAYLOADS, TOPIC, Watched
from tests.integration.classroom.observatory.test_page import settled

IDLE = "archive"
"""A group that nobody is a member of."""


@pytest.fixture
def idle(watched: Watched) -> Iterator[str]:
    """A group that has stored offsets and sleeps; its name."""
    with Groups(watched.cluster.zookeeper) as groups:
        groups.store(IDLE, {TOPIC: {BrokerPartition(0, 0): 26, BrokerPartition(0, 1): 26}})
        yield IDLE
        groups.remove(IDLE)


def choose(browser: Chromium, selector: str, value: str) -> None:
    """Choose in a list, as a hand would."""
    place = f"document.querySelector({json.dumps(selector)})"
    browser.wait(f"[...{place}?.options ?? []].some((one) => one.value === {json.dumps(value)})", f"{value} is offered")
    browser.js(f"{place}.value = {json.dumps(value)}; {place}.dispatchEvent(new Event('change'))")


def write(browser: Chromium, selector: str, text: str) -> None:
    browser.wait(f"document.querySelector({json.dumps(selector)}) !== null", f"there is a {selector}")
    browser.js(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")


def test_a_message_is_published_and_found_by_its_content(browser: Chromium, watched: Watched) -> None:
    """Issue 22 B8: publish from the page, read it where it says it lies, and find it in all partitions by a word."""
    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-1")
    choose(browser, "#publish-partition", "0-1")
    write(browser, "#publish-payload", '{"page": "/from the page"}')
    browser.js("document.querySelector('#publish-go').click()")
    browser.wait("document.querySelector('#published a') !== null", "it is stored")
    said = browser.js("document.querySelector('#published').textContent")
    assert "flushed and readable" in said
    offset = int(said.split("at offset ")[1].split(" ")[0].replace(",", ""))
    (broker,) = watched.cluster.processes.of_kind("broker")
    with BrokerConnection(broker.ready["host"], broker.ready["port"]) as connection:
        (found, *_) = decode_set(connection.fetch(TOPIC, 1, offset))
    assert found.payload == b'{"page": "/from the page"}'

    choose(browser, "#partition", "all")
    write(browser, "#contains", "from the page")
    browser.js("document.querySelector('form.ask').requestSubmit()")
    browser.wait("document.querySelector('#searched') !== null", "the search is over")
    assert "to the end of what is flushed" in browser.text("#searched")
    assert browser.text("#list").startswith(f"0-1 {offset} ")
    assert browser.complaints == []


def test_a_search_says_what_it_did_not_find(watched: Watched) -> None:
    """Issue 22 B8: what is not there is told with the number of messages that were looked at."""
    question = f"api/messages?topic={TOPIC}&partition=0-0&from=begin&contains=nowhere"
    with urllib.request.urlopen(watched.page + question, timeout=30) as answer:
        found = json.load(answer)

    assert (found["messages"], found["complete"]) == ([], True)
    assert found["searched"] >= len(PAYLOADS)


def test_a_group_is_moved_after_a_preview(browser: Chromium, watched: Watched, idle: str) -> None:
    """Issue 22 B8: the preview names old and new offset and changes nothing; then exactly that is stored (§3.1)."""
    browser.open(f"{watched.page}#groups?group={idle}")
    browser.wait(f"document.querySelector('#tools').innerText.includes('Move {idle} to')", "the idle group is chosen")
    write(browser, "#move-to", "start")
    browser.js("document.querySelector('#move-preview').click()")
    browser.wait("document.querySelector('#move-apply') !== null", "the plan is shown")
    assert "Nothing has been changed yet" in browser.text("#move-plan")
    with Groups(watched.cluster.zookeeper) as groups:
        assert groups.offsets(idle)[TOPIC][BrokerPartition(0, 0)] == 26
        browser.click("#move-apply")
        browser.wait("document.querySelector('#moved.good') !== null", "it is moved")
        assert groups.offsets(idle)[TOPIC] == {BrokerPartition(0, 0): 0, BrokerPartition(0, 1): 0}


def test_a_group_that_reads_is_not_moved(browser: Chromium, watched: Watched) -> None:
    """Issue 22 B8: members would store their own offsets over it, and the page says so before and after."""
    browser.open(f"{watched.page}#groups?group=newsfeed")
    browser.wait("document.querySelector('#tools').innerText.includes('Move newsfeed to')", "the group is chosen")
    browser.js("document.querySelector('#move-preview').click()")
    browser.click("#move-apply")
    browser.wait("document.querySelector('#moved.bad') !== null", "it is refused")

    assert "stop them first" in browser.text("#moved")


def test_a_fault_beside_its_effect_leaves_a_mark_to_jump_to(browser: Chromium, watched: Watched) -> None:
    """Issue 22 B2: expire a session from Ownership; the verdict appears there, and both strip and lanes lead back."""
    for consumer in watched.cluster.processes.of_kind("consumer"):
        watched.cluster.start(consumer)
    browser.open(f"{watched.page}#ownership?group=newsfeed")
    settled(browser)
    choose(browser, "#strike-what", "expire-session")
    choose(browser, "#strike-which", "consumer-1")
    browser.js("document.querySelector('#strike-go').click()")
    browser.wait("document.querySelector('#strike').innerText.includes('as promised')", "the verdict is here")
    browser.wait("document.querySelector('#marks .fault') !== null", "the strip has a mark")
    browser.wait("document.querySelector('#lanes .moment-link.fault') !== null", "the lanes have one")
    t = browser.js("document.querySelector('#marks .fault').dataset.t")
    browser.click("#marks .fault")
    browser.wait(f"location.hash.includes('at={t}')", "one looks at that moment")
    assert browser.text("#connection") == "looking back"
    browser.press("2")
    choose(browser, "#strike-what", "stop-broker")
    assert browser.js("document.querySelector('#strike-which').value") == "broker-0", "Segments offers brokers"


def test_every_box_of_the_opening_picture_is_a_door(browser: Chromium, watched: Watched) -> None:
    """Issue 22 B4: producers, brokers, groups, warehouse and ZooKeeper, each leads to its pane."""
    browser.open(watched.page)
    browser.wait("document.querySelector('#door-group-newsfeed') !== null", "the picture is drawn")
    doors = browser.js("Object.fromEntries([...document.querySelectorAll('.door')].map((d) => [d.id, d.hash]))")
    panes = {name: place.partition("?")[0] for name, place in doors.items()}

    assert panes["door-producers"] == "#browse"
    assert panes["door-broker-0"] == "#brokers"
    assert panes["door-group-newsfeed"] == "#ownership"
    assert panes["door-warehouse"] == "#load"
    assert panes["door-zookeeper"] == "#zookeeper"
    browser.js("document.querySelector('#door-zookeeper').click()")
    browser.wait("document.querySelector('#pane').dataset.drawn === 'zookeeper'", "the door opens")


def test_the_tour_leads_through_the_page(browser: Chromium, watched: Watched) -> None:
    """Issue 22 B4: by "next" alone one comes through every step, each on its pane with what it speaks of framed."""
    browser.open(watched.page)
    browser.js("document.querySelector('#begin-tour').click()")
    steps = []
    while not browser.js("document.querySelector('#tour').hidden"):
        browser.wait("document.querySelector('#pane').dataset.drawn !== ''", "the pane is drawn")
        browser.wait("document.querySelector('.toured') !== null", "something is framed")
        steps.append(browser.js("document.querySelector('#pane').dataset.drawn"))
        browser.js("document.querySelector('#tour-next').click()")

    assert len(steps) == 12
    assert {"overview", "segments", "browse", "zookeeper", "ownership", "groups", "load", "faults"} <= set(steps)
    assert browser.complaints == []
