"""What the page is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from classroom.observatory import paper_links
from classroom.observatory.broker_states import topics_view
from classroom.observatory.frames import Film, load, save
from classroom.observatory.lanes import lanes
from classroom.observatory.metrics import exposition
from classroom.observatory.view import project
from tests.unit.classroom.observatory.scenes import film, frame


def test_a_moment_is_the_last_frame_not_after_it() -> None:
    """Dragging the time strip to a moment shows the cluster as it was then."""
    seen = film(frame(1000), frame(2000), frame(3000))

    assert [seen.at(t)["t"] for t in (0, 1000, 2999, 9000)] == [1000, 1000, 2000, 3000]  # type: ignore[index]
    assert seen.at() is seen.at(3000)


def test_missing_files_are_shown_with_their_partition() -> None:
    """Issue 19 B8: what a broker says is gone stands in the frame, beside the files that are there."""
    log = {"first_offset": 24, "flushed_offset": 36, "end_offset": 36, "size": 12, "segments": []}
    gone = [{"file": "clicks-1/0.kafka", "start": 0, "end": 24}]
    state = {"topics": {"clicks": {"partitions": {"0": log, "1": log}}}, "missing": {"clicks-1": gone}}
    shown = topics_view({"7": state}, {})["clicks"]

    assert [shown[name]["missing"] for name in ("7-0", "7-1")] == [[], gone]


def test_an_empty_film_has_no_moment() -> None:
    """Before the first look there is nothing to show, and asking is not an error."""
    assert Film().at() is None


def test_old_frames_fall_off() -> None:
    """The film keeps a bounded number of frames, the newest."""
    seen = Film(keep=3)
    for t in range(10):
        seen.append(frame(t))

    assert [f["t"] for f in seen] == [7, 8, 9]


def test_a_recording_replays_what_was_seen(tmp_path: Path) -> None:
    """A saved run holds every frame, byte for byte the same view."""
    seen = film(frame(1000), frame(2000, {"0-0": "bob"}))
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(save(seen)))
    again = load(path)

    assert list(again) == list(seen)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no frames"),
        ("not json\n", "line 1"),
        ("{}\n", "not a saved run"),
        ('{"kafka2011":"recording"}\n[1]\n', "line 2"),
    ],
)
def test_a_damaged_recording_is_refused_by_line(tmp_path: Path, text: str, complaint: str) -> None:
    """A file that is not a recording gets an error that says where it is wrong."""
    path = tmp_path / "run.jsonl"
    path.write_text(text)

    with pytest.raises(ValueError, match=complaint):
        load(path)


def test_a_lane_per_consumer_and_one_for_nobody() -> None:
    """The ownership picture shows who held a partition from when to when, and when nobody did (§3.2)."""
    frames = [
        frame(1000, {"0-0": "ada", "0-1": "bob"}),
        frame(2000, {"0-1": "bob"}),
        frame(3000, {"0-0": "bob", "0-1": "bob"}),
    ]
    found = lanes(frames, "g")
    assert found is not None
    spans = {
        member["id"]: [(s["partition"], s["from"], s["to"]) for s in member["spans"]] for member in found["members"]
    }

    assert spans["ada"] == [("clicks 0-0", 1000, 2000)]
    assert spans["nobody"] == [("clicks 0-0", 2000, 3000)]
    assert ("clicks 0-0", 3000, 3000) in spans["bob"]
    assert found["members"][-1]["id"] == "nobody"


def test_lag_is_the_difference_of_two_byte_positions() -> None:
    """A group's lag is the flushed end less the stored offset, in bytes (§3.1: offsets are bytes)."""
    seen = film(frame(1000))
    view = project(seen, seen.at(), topic="", group="g", pane="groups")  # type: ignore[arg-type]

    assert [row["lag"] for row in view["group"]["partitions"]] == [500, 0]
    assert view["groups"][0]["lag"] == 500


def test_lag_in_seconds_is_when_the_log_ended_where_the_group_is() -> None:
    """A group is as many seconds behind as have passed since the log's end was at its offset."""
    early = frame(1000)
    early["topics"] = {"clicks": {"0-0": early["topics"]["clicks"]["0-0"] | {"flushed": 400}}}
    seen = film(early, frame(9000))
    view = project(seen, seen.at(), topic="", group="g", pane="groups")  # type: ignore[arg-type]

    assert view["group"]["partitions"][0]["behind_ms"] == 8000


def test_the_view_stays_small_when_the_cluster_is_large() -> None:
    """A thousand partitions and fifty groups give the page no more than one pane can show."""
    large = frame(1000)
    partition = large["topics"]["clicks"]["0-0"]
    large["topics"] = {f"t{n}": {f"0-{p}": partition for p in range(100)} for n in range(10)}
    offsets = {f"t{n}": {f"0-{p}": 1 for p in range(100)} for n in range(10)}
    large["groups"] = {f"g{n}": large["groups"]["g"] | {"offsets": offsets, "owners": {}} for n in range(50)}
    seen = film(large)
    view = project(seen, large, topic="t3", group="g7", pane="segments")

    assert len(view["topic"]["partitions"]) == 100
    assert view["group"] is None
    assert len(view["groups"]) == 50


def test_new_and_vanished_nodes_are_marked() -> None:
    """The ZooKeeper pane shows which nodes came and which went in the last seconds (§3.2)."""
    before = frame(1000)
    after = frame(
        2000,
        tree=[["/consumers", "", None, False], ["/consumers/g/ids/bob", "x", "0x2", False]],
        changes=[["/consumers/g/ids/ada", "gone", "0x1"], ["/consumers/g/ids/bob", "new", "0x2"]],
    )
    seen = film(before, after)
    view = project(seen, after, topic="", group="", pane="zookeeper")

    assert {node["path"]: node["change"] for node in view["tree"]} == {
        "/consumers": None,
        "/consumers/g/ids/ada": "gone",
        "/consumers/g/ids/bob": "new",
    }


def test_every_link_leads_to_a_line_of_code() -> None:
    """Each element's "code" link names a module and a line that exist today."""
    found = paper_links.resolve()

    assert set(found) == set(paper_links.LINKS)
    for key, link in found.items():
        source = paper_links.source_of(link["module"])
        assert source is not None
        assert paper_links.LINKS[key].code.partition(":")[2] in source.splitlines()[link["line"] - 1]


def test_only_our_own_modules_can_be_read() -> None:
    """The page shows the source of the modules it links to and of nothing else."""
    assert paper_links.source_of("os") is None


def test_lag_is_offered_to_a_monitor() -> None:
    """The observatory's metrics hold each group's lag in bytes, by partition."""
    text = exposition(frame(1000))

    assert 'kafka2011_group_lag_bytes{group="g",partition="0-0",topic="clicks"} 500.0' in text
