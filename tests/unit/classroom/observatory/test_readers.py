"""Who is registered and does not read. Issue 22 B1 and B12."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from classroom.cluster.processes import Process, Processes
from classroom.observatory.broker_states import modern_groups, readable_ends
from classroom.observatory.lanes import lanes
from classroom.observatory.readers import STUCK_MS, Readers
from classroom.observatory.view import project
from kafka2011.child import start_time
from tests.unit.classroom.observatory.scenes import film, frame
from tests.waiting import until

NAMES = {"g_host-1-ab": "consumer-0"}
MODERN = "member-0-0123456789abcdef0123456789abcdef"


def group(member: str, **more: Any) -> dict[str, Any]:
    owners = {"clicks": {"0-0": member}}
    return {"kind": "", "state": "", "members": [member], "owners": owners, "offsets": {}} | more


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing until it is ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def remembered(directory: Path, name: str, child: subprocess.Popen[bytes]) -> None:
    """Write the process into the cluster's file, as whoever starts one does."""
    processes = Processes(directory)
    processes._remember(Process(name, "consumer", [], pid=child.pid, started=start_time(child.pid)))


@pytest.mark.parametrize(("name", "member"), [("consumer-0", "g_host-1-ab"), ("member-0", MODERN)])
def test_a_dead_owner_is_known_before_its_session_ends(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], name: str, member: str
) -> None:
    """Issue 22 B1: paused, awake, killed: each is told at the next look, whatever the registry still says (§3.2)."""
    remembered(tmp_path, name, sleeper)
    readers, groups = Readers(tmp_path), {"g": group(member)}

    def look() -> dict[str, str]:
        return readers.not_reading(0, groups, {}, NAMES)

    assert look() == {}
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: look() == {member: "paused"}, "it is seen to stand still")
    os.kill(sleeper.pid, signal.SIGCONT)
    until(lambda: look() == {}, "it is seen to go on")
    sleeper.kill()
    until(lambda: look() == {member: "dead"}, "it is seen to be dead")


def test_the_second_life_of_a_process_does_not_revive_the_first_one_s_member(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """Issue 22 B1: a consumer started again under its name is a new member; the old one stays dead."""
    readers = Readers(tmp_path)
    remembered(tmp_path, "consumer-0", sleeper)
    assert readers.not_reading(0, {"g": group("g_host-1-ab")}, {}, NAMES) == {}

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as second:
        remembered(tmp_path, "consumer-0", second)
        both = group("g_host-1-ab", members=["g_host-1-ab", "g_host-2-cd"])
        found = readers.not_reading(1, {"g": both}, {}, NAMES | {"g_host-2-cd": "consumer-0"})
        second.kill()

    assert found == {"g_host-1-ab": "dead"}


def test_an_owner_without_progress_is_told_where_messages_wait() -> None:
    """Issue 22 B1: of a process we cannot see, only its offsets speak, and only while there is something to read."""
    readers, waiting, read = Readers(), {"clicks": {"0-0": 900}}, {"clicks": {"0-0": 400}}

    def look(t: int, offset: int, ends: dict[str, dict[str, int]]) -> dict[str, str]:
        return readers.not_reading(t, {"g": group("m", offsets={"clicks": {"0-0": offset}})}, ends, {})

    assert look(0, 400, waiting) == {}
    assert look(STUCK_MS, 400, waiting) == {}
    assert look(STUCK_MS + 1, 400, waiting) == {"m": "stuck"}
    assert look(STUCK_MS + 2, 500, waiting) == {}
    assert look(9 * STUCK_MS, 500, read) == {}
    assert look(20 * STUCK_MS, 500, {"clicks": {}}) == {}, "nobody can read a broker that is gone"


def test_a_lane_turns_red_at_the_death_not_at_the_end_of_the_session() -> None:
    """Issue 22 B1: from the death to the take-over the strip is owned and not read; then the next owner's begins."""
    frames = [
        frame(1000, {"0-0": "ada", "0-1": "bob"}),
        frame(2000, {"0-0": "ada", "0-1": "bob"}, not_reading={"ada": "dead"}),
        frame(7000, {"0-0": "ada", "0-1": "bob"}, not_reading={"ada": "dead"}),
        frame(8000, {"0-0": "bob", "0-1": "bob"}),
    ]

    def spans(seen: list[Any]) -> dict[str, list[tuple[int, int, str]]]:
        found = lanes(seen, "g")
        assert found is not None
        return {m["id"]: [(s["from"], s["to"], s["state"]) for s in m["spans"]] for m in found["members"]}

    assert spans(frames)["ada"] == [(1000, 2000, ""), (2000, 8000, "dead")]
    assert (8000, 8000, "") in spans(frames)["bob"]
    assert lanes(frames[:3], "g")["members"][0]["state"] == "dead"  # type: ignore[index]


def gone(t: int) -> Any:
    away = frame(t)
    away["brokers"] = {"0": away["brokers"]["0"] | {"alive": False}}
    return away


def test_owned_partitions_of_a_gone_broker_are_a_gap_in_the_lane() -> None:
    """Issue 22 B12: a group that keeps its assignment while the broker is gone reads nothing of it."""
    found = lanes([frame(1000), gone(2000), frame(3000)], "g")
    assert found is not None
    spans = [(s["from"], s["to"], s["state"]) for s in found["members"][0]["spans"] if s["partition"] == "clicks 0-0"]

    assert spans == [(1000, 2000, ""), (2000, 3000, "broker gone"), (3000, 3000, "")]


def test_segments_of_a_gone_broker_are_not_readable_and_hold_what_groups_have_read() -> None:
    """Issue 22 B12: the state follows what can be read, and no stored offset stands beyond the bar's end."""
    away = gone(2000)
    away["groups"]["g"]["offsets"] = {"clicks": {"0-0": 1500, "0-1": 900}}
    seen = film(frame(1000), away)
    first, second = project(seen, away, topic="clicks", group="", pane="segments")["topic"]["partitions"]
    before = project(seen, seen.at(1000), topic="clicks", group="", pane="segments")["topic"]["partitions"]  # type: ignore[arg-type]

    assert [p["gone"] for p in before] == [None, None]
    assert (first["gone"], first["flushed"], first["end"]) == (0, 1500, 1500)
    assert first["segments"] == [[0, 600, 600], [600, 900, 900]]
    assert (second["flushed"], second["segments"][-1]) == (900, [600, 400, 300])


def test_the_groups_table_says_that_nobody_reads() -> None:
    """Issue 22 B1, B12: an owner that is dead, or whose broker is gone, is not shown as a reader."""
    dead = frame(1000, {"0-0": "ada", "0-1": "bob"}, not_reading={"ada": "dead"})
    rows = project(film(dead), dead, topic="", group="g", pane="groups")["group"]["partitions"]
    away = gone(2000)
    rows += project(film(away), away, topic="", group="g", pane="groups")["group"]["partitions"]

    assert [row["state"] for row in rows] == ["dead", "", "broker gone", "broker gone"]


def test_a_gone_coordinator_is_believed_only_where_nobody_else_knows_the_group() -> None:
    """Issue 22 B12: what a broker said before it went does not hide what the others say now."""
    old = {"state": "Stable", "members": ["m"], "owners": {"t": {"0-0": "m"}}, "offsets": {}}
    new = {"state": "Empty", "members": [], "owners": {}, "offsets": {}}
    states = {n: {"plugins": {"modern": {"groups": {"g": known}}}} for n, known in (("0", new), ("1", old))}

    assert modern_groups(states, {"0"})["g"]["members"] == []
    assert modern_groups(states, set())["g"]["state"] == "broker 1, its coordinator, is gone"


def test_only_registered_brokers_have_readable_ends() -> None:
    """Issue 22 B12: what is on a broker that is gone cannot be read."""
    topics = {"t": {"0-0": {"flushed": 5}, "1-0": {"flushed": 7}}}

    assert readable_ends(topics, {"1"}) == {"t": {"1-0": 7}}
