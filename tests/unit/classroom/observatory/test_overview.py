"""The opening picture, and the moments worth going back to. Issue 22 B2, B4."""

from __future__ import annotations

from typing import Any

from classroom.observatory.frames import Film, Frame
from classroom.observatory.view import project
from tests.unit.classroom.observatory.scenes import film, frame


def rebalance(t: int, consumer: str, group: str = "g") -> dict[str, Any]:
    told = {"group": group, "kind": "algorithm1", "consumer": consumer, "reason": "ada is gone", "seconds": 0.1}
    return {"t": t, "source": consumer, "event": "rebalance_done", "text": "", "rebalance": told}


def overview(*frames: Frame) -> dict[str, Any]:
    seen = film(*frames)
    newest = seen.at()
    assert newest is not None
    found: dict[str, Any] = project(seen, newest, topic="", group="", pane="overview")
    return found


def test_what_flows_is_told_in_bytes_a_second() -> None:
    """Issue 22 B4: what is published, and what each group reads, as rates of the last seconds (§3)."""
    later = frame(3000)
    grown = later["topics"]["clicks"]["0-0"] | {"end": 3000}
    later["topics"] = {"clicks": {"0-0": grown, "0-1": later["topics"]["clicks"]["0-1"]}}
    later["groups"] = {"g": later["groups"]["g"] | {"offsets": {"clicks": {"0-0": 800, "0-1": 900}}}}
    flow = overview(frame(1000), later)["flow"]

    assert flow["topics"] == [{"name": "clicks", "rate": 1000.0}]
    assert [(group["name"], group["rate"], group["members"]) for group in flow["groups"]] == [("g", 200.0, 1)]


def test_a_group_that_went_back_has_no_rate() -> None:
    """A rate that would be negative is not known: the group was rewound, or is new."""
    back = frame(2000)
    back["groups"] = {"g": back["groups"]["g"] | {"offsets": {"clicks": {"0-0": 0}}}}

    assert overview(frame(1000), back)["flow"]["groups"][0]["rate"] is None
    assert overview(frame(1000))["flow"]["groups"][0]["rate"] is None


def test_the_four_registries_are_counted() -> None:
    """§3.2: brokers, consumers, owners and offsets, and the sessions that keep them."""
    tree = [
        ["/brokers/ids/0", "", "0x1", False],
        ["/consumers/g/ids/ada", "", "0x2", False],
        ["/consumers/g/owners/clicks/0-0", "ada", "0x2", False],
        ["/consumers/g/offsets/clicks/0-0", "7", None, False],
        ["/consumers/g/offsets/clicks/0-1", "7", None, False],
    ]
    counted = overview(frame(1000, tree=tree))["flow"]["zookeeper"]

    assert counted == {"brokers": 1, "consumers": 1, "owners": 1, "offsets": 2, "sessions": 2}


def test_faults_rebalances_and_brokers_are_marked() -> None:
    """Issue 22 B2: each is a mark with its moment; one change makes every member rebalance, and that is one mark."""
    struck = [{"t": 1900, "title": "Kill a consumer", "target": "consumer-0"}]
    marks = overview(
        frame(1000),
        frame(2000, struck=struck),
        frame(9000, events=[rebalance(8000, "a"), rebalance(8500, "b"), rebalance(8600, "b", "other")]),
        frame(10_000, events=[rebalance(9_900, "c")], changes=[["/brokers/ids/1", "gone", "0x1"]]),
    )["marks"]

    assert [(mark["t"], mark["kind"]) for mark in marks] == [
        (1900, "fault"),
        (8000, "rebalance"),
        (8600, "rebalance"),
        (10_000, "broker"),
    ]
    assert marks[0]["says"] == "Kill a consumer: consumer-0"
    assert marks[1]["says"] == "g rebalanced: ada is gone"


def test_marks_go_with_the_frames_they_belong_to() -> None:
    """What fell off the strip cannot be gone back to, so it is not marked."""
    seen = Film(keep=2)
    for t in (1000, 2000, 3000):
        seen.append(frame(t, struck=[{"t": t, "title": "Stop a broker", "target": "broker-1"}]))

    assert [mark["t"] for mark in seen.marks(10)] == [2000, 3000]
