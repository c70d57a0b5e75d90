"""A broker with standbys on the page: members on the rulers, faults with verdicts (issue 27, build 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from classroom.cluster.processes import Process, Processes
from classroom.observatory.broker_states import broker_view, topics_view
from classroom.observatory.faults import FaultRefused, Faults
from classroom.observatory.frames import Frame
from classroom.observatory.members import OF_MEMBERS
from classroom.observatory.verdicts import Seen, verdict
from tests.unit.classroom.observatory.scenes import film

LOG = {"first_offset": 0, "flushed_offset": 90, "end_offset": 120, "segments": [], "size": 120}
STANDBY = {
    "member": "a",
    "leads": True,
    "epoch": 7,
    "in_sync": ["a", "b"],
    "ends": {"t-0": {"b": 80}},
    "partitions": {"t-0": {"watermark": 80, "epochs": [[5, 0], [7, 60]]}},
}
STATE: dict[str, Any] = {"topics": {"t": {"partitions": {"0": LOG}}}, "plugins": {"standby": STANDBY}}


def test_a_partition_shows_its_members() -> None:
    """What readers see is the watermark; who leads, how far each has come and where epochs began stand beside it."""
    seen = topics_view({"0": STATE}, {})["t"]["0-0"]
    assert seen["flushed"] == 80
    assert seen["held"] == {"leader": "a", "in_sync": ["a", "b"], "ends": {"b": 80}, "epochs": [[5, 0], [7, 60]]}
    known = {"host": "h", "port": 1, "alive": True}
    assert broker_view(known, STATE)["standby"] == {"member": "a", "epoch": 7, "in_sync": ["a", "b"]}


def test_a_broker_without_standbys_is_as_it_was() -> None:
    """Off by default: nothing about members is in a frame."""
    seen = topics_view({"0": {**STATE, "plugins": {}}}, {})["t"]["0-0"]
    assert (seen["flushed"], "held" in seen) == (90, False)
    assert "standby" not in broker_view({"host": "h", "port": 1, "alive": True}, {})


def _at(t: int, member: str, epoch: int, in_sync: list[str], watermark: int = 80, alive: bool = True) -> Frame:
    standby = {"member": member, "epoch": epoch, "in_sync": in_sync}
    partition = {"flushed": watermark, "held": {}}
    return {"t": t, "brokers": {"0": {"alive": alive, "standby": standby}}, "topics": {"t": {"0-0": partition}},
            "groups": {}, "events": [], "tree": [], "names": {}, "changes": []}  # fmt: skip


def test_a_killed_leader_is_judged_by_who_leads_next() -> None:
    """*Kill the leader*: open until another leads in a new epoch and readers see what they saw."""
    frames = [_at(1000, "a", 7, ["a", "b"]), _at(2000, "a", 7, ["a", "b"], alive=False), _at(4000, "b", 9, ["b"], 70)]
    seen = Seen(1000, "kill-leader", "broker-0", facts={"kind": "algorithm1", "member": "a"})
    assert verdict(seen, frames[1], film(*frames)) == ("after 1 s nobody leads broker 0", False)
    said, final = verdict(seen, frames[2], film(*frames))
    assert ("see less" in said, final) == (True, False)
    said, final = verdict(seen, _at(4000, "b", 9, ["b"]), film(*frames))
    assert (said, final) == ("as promised: b leads in epoch 9, 3.0 s after; nothing seen is lost", True)


def test_a_deleted_disk_is_judged_by_its_return() -> None:
    """*Delete a member's disk*: open until the member has left the in-sync set and is in it again."""
    frames = [_at(1000, "a", 7, ["a", "b"])]
    seen = Seen(1000, "delete-disk", "broker-0-b", facts={"kind": "algorithm1", "member": "b"})
    assert not verdict(seen, _at(2000, "a", 7, ["a", "b"]), film(*frames))[1]
    assert not verdict(seen, _at(3000, "a", 7, ["a"]), film(*frames))[1]
    said, final = verdict(seen, _at(4000, "a", 7, ["a", "b"], 120), film(*frames))
    assert (said.startswith("as promised: b has everything again"), final) == (True, True)


def test_members_alone_can_be_struck_so(tmp_path: Path) -> None:
    """A disk is deleted only where others hold what was on it; a broker without standbys has no such buttons."""
    processes = Processes(tmp_path)
    processes._remember(Process("broker-0", "broker", ["kafka2011", "broker", "start"]))
    (tmp_path / "broker-0").mkdir()
    faults = Faults(tmp_path)
    for name in OF_MEMBERS:
        with pytest.raises(FaultRefused, match="--standbys"):
            faults.strike(name, "broker-0")
    assert (tmp_path / "broker-0").is_dir()
    kinds = {kind["name"]: kind["targets"] for kind in faults.as_view()["kinds"]}
    assert all(kinds[name] == [] for name in OF_MEMBERS)
