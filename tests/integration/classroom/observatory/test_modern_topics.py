"""Topics of today on the page: files with indexes, batches byte by byte, keys, headers, tombstones. Issue 25 7."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from classroom.observatory.modern_messages import ModernPartition
from since2011.client.cluster import Cluster as ModernCluster
from since2011.wire.records import Record
from tests.integration.classroom.observatory.chromium import Chromium
from tests.integration.classroom.observatory.conftest import Watched
from tests.integration.classroom.observatory.test_actions import write
from tests.waiting import until

TOPIC = "orders"


@pytest.fixture(scope="module")
def orders(watched: Watched) -> Iterator[ModernPartition]:
    """A modern topic with three records, one of them a tombstone, seen by the page."""
    (broker,) = watched.cluster.processes.of_kind("broker")
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.ready['admin_port']}/state", timeout=10) as answer:
        port = json.load(answer)["plugins"]["modern"]["port"]
    asking = ModernCluster([("127.0.0.1", port)], client_id="test")
    until(lambda: TOPIC in asking.topics([TOPIC]).ids, "the topic is made")
    partition = ModernPartition("127.0.0.1", port, TOPIC, 0)
    for number, value in enumerate((b'{"total": 7}', b'{"total": 9}', None)):
        partition.produce(Record(0, 1_600_000_000_000 + number, b"ada", value, (("shop", b"bern"),)))
    until(lambda: messages(watched, "begin"), "the page knows the topic")
    yield partition


def messages(watched: Watched, start: str, contains: str = "") -> list[dict[str, object]]:
    question = f"api/messages?topic={TOPIC}&partition=0-0&from={start}&contains={contains}"
    try:
        with urllib.request.urlopen(watched.page + question, timeout=30) as answer:
            found: list[dict[str, object]] = json.load(answer)["messages"]
    except urllib.error.HTTPError:
        return []
    return found


def test_records_are_found_by_offset_time_and_content(watched: Watched, orders: ModernPartition) -> None:
    """Issue 25 point 7: begin, an offset, the last one, a time by the time index, and a text in value or header."""
    assert [one["offset"] for one in messages(watched, "begin")][:3] == [0, 1, 2]
    assert messages(watched, "1")[0]["offset"] == 1
    assert [one["offset"] for one in messages(watched, "@2020-09-13T12:26:40.001%2B00:00")][:1] == [1]
    assert [one["offset"] for one in messages(watched, "begin", "total%22:%209")] == [1]
    assert len(messages(watched, "begin", "bern")) >= 3


def test_key_headers_and_tombstone_are_shown_with_the_batch(
    browser: Chromium, watched: Watched, orders: ModernPartition
) -> None:
    """Issue 25 point 7: a record's key, headers and time, and the header of its batch in colours."""
    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-0&from=0")
    browser.wait("document.querySelector('#record-key') !== null", "the record is shown")
    assert browser.text("#record-key") == "ada"
    assert "bern" in browser.text("#anatomy")
    assert browser.js("document.querySelectorAll('#hex .crc').length") == 4
    assert browser.js("document.querySelectorAll('#hex .base-timestamp').length") == 8

    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-0&from=2")
    browser.wait("document.querySelector('#tombstone') !== null", "a tombstone is called one")
    assert browser.complaints == []


def test_a_record_is_published_with_key_and_headers(
    browser: Chromium, watched: Watched, orders: ModernPartition
) -> None:
    """Issue 25 point 7: what the page publishes is what a fetch returns."""
    browser.open(f"{watched.page}#browse?topic={TOPIC}&partition=0-0")
    write(browser, "#publish-key", "eve")
    write(browser, "#publish-payload", "from the page")
    write(browser, "#publish-headers", "shop: basel\nlang: de")
    browser.js("document.querySelector('#publish-go').click()")
    browser.wait("document.querySelector('#published a') !== null", "it is acknowledged")
    found = messages(watched, "begin", "from the page".replace(" ", "%20"))[-1]

    assert (found["key"], found["text"]) == ("eve", "from the page")
    assert found["headers"] == [["shop", "basel"], ["lang", "de"]]


def test_segments_tells_of_the_indexes(browser: Chromium, watched: Watched, orders: ModernPartition) -> None:
    """Issue 25 point 7: a modern log's files with their offset and time index, which a log of 2011 has not."""
    browser.open(f"{watched.page}#segments?topic={TOPIC}")
    browser.wait("document.querySelector('#indexes') !== null", "the indexes are listed")

    assert "00000000000000000000.log" in browser.text("#indexes")
    assert "offsets are records" in browser.text("#pane")
    browser.open(f"{watched.page}#segments?topic=page_views")
    browser.wait("document.querySelector('#pane h2')?.innerText === 'Segments of page_views'", "a topic of 2011")
    assert browser.js("document.querySelector('#indexes') === null")
