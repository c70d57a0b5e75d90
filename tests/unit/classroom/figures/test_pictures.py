"""The figures say what was seen, and nothing else. Issue 24 point 6, issue 22 B15."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from classroom.figures import copies, log, pictures, sequence
from classroom.figures.drawing import Sheet
from classroom.figures.run import GROUP, TOPIC, Run
from classroom.figures.sequence import Exchange
from classroom.observatory.frames import Film, Frame
from kafka2011.wire import encode_set

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}title")][1:]


def frame(t: int, owners: dict[str, str], dead: str = "") -> Frame:
    made: dict[str, Any] = {"first": 0, "flushed": t, "end": t + 50, "size": t, "segments": [[0, t, t]]}
    return {
        "t": t,
        "brokers": {"0": {"host": "h", "port": 1, "alive": True}},
        "topics": {TOPIC: {"0-0": made, "0-1": made}},
        "groups": {
            GROUP: {
                "kind": "algorithm1",
                "state": "reading",
                "members": sorted(set(owners.values())),
                "owners": {TOPIC: owners},
                "offsets": {TOPIC: {"0-0": t - 100}},
            }
        },
        "tree": [],
        "events": [],
        "loads": [],
        "names": {"a": "consumer-0", "b": "consumer-1", "c": "consumer-2"},
        "not_reading": {dead: "dead"} if dead else {},
    }


@pytest.fixture
def run() -> Run:
    """A run as live_run returns it, small."""
    film = Film(
        [
            frame(1000, {"0-0": "a", "0-1": "a"}),
            frame(2000, {"0-0": "a", "0-1": "b"}),
            frame(3000, {"0-0": "c", "0-1": "b"}),
            frame(4000, {"0-0": "c", "0-1": "b"}, dead="c"),
            frame(5000, {"0-0": "b", "0-1": "b"}),
        ]
    )
    changes = ((900, "consumer-0 joins"), (1500, "consumer-1 joins"), (2500, "consumer-2 joins"), (3500, "c is killed"))
    return Run(film, changes, (1000, 2000, 3000, 5000))


def test_figure_2_has_a_box_per_message() -> None:
    """§3.1, Figure 2: every message of every file is a box with its offset, its length and where the next begins."""
    first = encode_set([b"one", b"second", b"the third"])
    second = encode_set([b"4"])
    drawn = log.picture([(0, first), (len(first), second)], flushed=len(first))
    boxes = titles(drawn)

    assert len(boxes) == 4
    assert boxes[0] == f"offset 0, {len(encode_set([b'one']))} bytes; the next is at {len(encode_set([b'one']))}"
    assert f"{len(first):020}.kafka, appended to" in words(drawn)
    assert any(f"nobody can read from {len(first):,} on" in says for says in words(drawn))


def test_ownership_shows_the_dead_in_red(run: Run) -> None:
    """§3.2: a lane per consumer; what a dead consumer still owns is told as that."""
    drawn = pictures.ownership(run)

    assert f"{TOPIC} 0-0: dead" in titles(drawn)
    assert "consumer-2 (gone)" in words(drawn)


def test_every_generation_names_its_change_and_its_duration(run: Run) -> None:
    """§3.2 Algorithm 1: four generations, each with what set it off and how long it took."""
    drawn = words(pictures.generations(run))

    assert [says for says in drawn if says.startswith("generation")] == [f"generation {n}" for n in (1, 2, 3, 4)]
    assert "settled after 1.5 s" in drawn and "c is killed" in drawn


def test_three_offsets_are_three_lines(run: Run) -> None:
    """§3.1: written, flushed and stored, each a line over the whole run."""
    lines = list(ElementTree.fromstring(pictures.offsets(run)).iter(f"{SVG}polyline"))

    assert [len(line.attrib["points"].split()) for line in lines] == [5, 5, 5]


def test_figure_1_draws_an_arrow_from_each_partition_to_its_owner(run: Run) -> None:
    """§3 Figure 1: who publishes, who keeps, who reads, as it was in the third generation."""
    drawn = words(pictures.system(run))

    assert {"a producer", "broker 0", "consumer-1", "consumer-2"} <= set(drawn)
    assert "consumer-0" not in drawn


def test_the_copies_carry_what_was_counted() -> None:
    """§3.1 Efficient transfer: the numbers under both rows are the measured ones, or it is said that there are none."""
    counted = {"copy": {"per_64k": 2.1, "copied": 2.0}, "sendfile": {"per_64k": 0.6, "copied": 0.01}}
    with_numbers = words(copies.picture(counted, {"copy": 0.8, "sendfile": 0.3}))
    without = words(copies.picture({"copy": None, "sendfile": None}, {"copy": 0.8, "sendfile": 0.3}))

    assert any("2.1 system calls for 64 KB, 2.00 bytes copied" in says for says in with_numbers)
    assert sum("could not be counted here" in says for says in without) == 2


def test_a_sequence_keeps_the_order_of_the_wire() -> None:
    """Requests and answers stand in the order they passed; a heartbeat answered with an error is the news."""
    seen = [
        Exchange("ada", "JoinGroup", 1.0, 1.2),
        Exchange("ada", "Fetch", 1.1, 1.1),
        Exchange("bob", "JoinGroup", 1.3, 1.6),
        Exchange("ada", "Heartbeat", 1.4, 1.5, error=27),
    ]
    drawn = words(sequence.picture(seen))
    arrows = [says for says in drawn if "Join" in says or "Heart" in says or "rebalance" in says][1:]

    assert arrows == ["JoinGroup", "JoinGroup answer", "JoinGroup", "Heartbeat", "rebalance!", "JoinGroup answer"]


def test_what_comes_from_the_cluster_is_text() -> None:
    """A name with markup in it is drawn as words, not obeyed."""
    sheet = Sheet(100, 100, "<script>&")
    sheet.text(1, 1, "</text><script>")

    assert words(sheet.svg()) == ["<script>&", "</text><script>"]
