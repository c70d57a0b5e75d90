"""Events, rebalances and loads as the page is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from classroom.observatory.broker_states import modern_groups
from classroom.observatory.journals import Journals
from classroom.observatory.loads import Loads
from classroom.observatory.verdicts import Seen, verdict
from tests.unit.classroom.observatory.scenes import film, frame


def write(directory: Path, name: str, *entries: dict[str, Any]) -> None:
    with (directory / f"{name}.jsonl").open("a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


def event(t: int, name: str, **fields: Any) -> dict[str, Any]:
    return {"n": t, "t": t, "event": name, "group": "g", **fields}


def test_a_rebalance_is_told_once_with_reason_duration_and_moves(tmp_path: Path) -> None:
    """Start and end of a rebalance are one line: who came or went, how long it took, how many moved (§3.2)."""
    journals = Journals(tmp_path)
    write(tmp_path, "consumer-0", event(1000, "rebalance_started", consumer="g_a"))
    assert [e for e in journals.read() if "rebalance" in e] == []
    write(tmp_path, "consumer-1", event(1100, "consumer_registered", consumer="g_b"))
    write(tmp_path, "consumer-0", event(1250, "rebalance_done", consumer="g_a", owned=["t/0-0", "t/0-1"], attempts=2))
    journals.registry_changed(1200, [["/consumers/g/ids/g_b", "new", "0x1"], ["/consumers/x/ids/y", "gone", "0x2"]])
    (told,) = [e["rebalance"] for e in journals.read() if "rebalance" in e]

    assert (told["consumer"], told["reason"]) == ("consumer-0", "consumer-1 came")
    assert (told["seconds"], told["moved"]) == (0.25, 2)
    assert journals.names == {"g_a": "consumer-0", "g_b": "consumer-1"}


def test_the_reason_is_the_consumers_own(tmp_path: Path) -> None:
    """A consumer says what changed; the page shows it with the names of the processes (§3.2)."""
    journals = Journals(tmp_path)
    write(tmp_path, "consumer-1", event(900, "consumer_registered", consumer="g_host-1-ab"))
    reason = "member g_host-1-ab is gone; topic t grew to 4 partitions"
    write(tmp_path, "consumer-0", event(1250, "rebalance_done", consumer="g_a", owned=[], attempts=1, reason=reason))
    journals.registry_changed(1200, [["/consumers/g/ids/g_b", "new", "0x1"]])
    (told,) = [e["rebalance"] for e in journals.read() if "rebalance" in e]

    assert told["reason"] == "member consumer-1 is gone; topic t grew to 4 partitions"


def test_a_modern_rebalance_lasts_until_the_group_is_stable() -> None:
    """A modern group's rebalance is from the first state that is not stable to the next that is."""
    journals = Journals()
    states = [
        event(t, "group_state_changed", before="", after=after, generation=2, n_members=2, reason=reason)
        for t, after, reason in [
            (1000, "PreparingRebalance", "x"), (1400, "CompletingRebalance", "y"), (1900, "Stable", "z")
        ]
    ]  # fmt: skip
    told = [e["rebalance"] for e in journals.shown("broker-0", states) if "rebalance" in e]

    assert [(r["kind"], r["reason"], r["seconds"]) for r in told] == [("modern", "x", 0.9)]


def test_routine_and_broken_lines_are_left_out(tmp_path: Path) -> None:
    """Commits every second and a line cut short by a kill are not shown, the rest is."""
    journals = Journals(tmp_path)
    write(tmp_path, "c", event(1, "committed", consumer="a"), event(2, "released", consumer="a"))
    with (tmp_path / "c.jsonl").open("a") as file:
        file.write('{"n": 3, "t"\n[]\n{"cut short')

    assert [e["event"] for e in journals.read()] == ["released"]


def test_a_load_is_shown_from_its_report(tmp_path: Path) -> None:
    """A report's rows, ranges and verdicts are shown; one that is half written waits (§4)."""
    part = {"partition": "0-1", "from": 5, "to": 95, "gap": None}
    topic = {"topic": "clicks", "rows": 3, "dead": 0, "bytes": 90, "partitions": [part]}
    full = {
        "topic": "clicks", "start_ms": 0, "window_ms": 60_000, "sent": 3, "held": None, "loaded": 3,
        "verdict": "complete", "why": "",
    }  # fmt: skip
    short = full | {"start_ms": 60_000, "sent": 5, "verdict": "short by 2"}
    report = {
        "load": "n1", "created_ms": 1, "state": "committed", "error": None, "rows": 3, "dead": 0, "bytes": 90,
        "seconds": 1.5, "topics": [topic], "audit": {"verdicts": {"complete": 1, "short": 1}, "windows": [full, short]},
    }  # fmt: skip
    (tmp_path / "n1.json").write_text(json.dumps(report))
    (tmp_path / "n2.json").write_text(json.dumps(report)[:50])
    (shown,) = Loads(tmp_path).read()

    assert shown["audit"] == {"complete": 1, "short": 1}
    # Issue 22 B14: "1 short" names the window.
    assert [(w["start_ms"], w["sent"], w["verdict"]) for w in shown["windows"]] == [(60_000, 5, "short by 2")]
    assert shown["ranges"] == [{"topic": "clicks", "partition": "0-1", "from": 5, "to": 95}]


def test_the_broker_with_the_members_speaks_for_a_modern_group() -> None:
    """Two brokers know a group; the one that has its members is believed."""
    empty = {"state": "Empty", "members": [], "owners": {}, "offsets": {}}
    full = {"state": "Stable", "members": ["m"], "owners": {}, "offsets": {}}
    states = {n: {"plugins": {"modern": {"groups": {"g": known}}}} for n, known in enumerate((empty, full, empty))}

    assert modern_groups({str(n): state for n, state in states.items()}, {"0", "1", "2"})["g"]["members"] == ["m"]


def test_a_fault_is_over_when_every_partition_has_an_owner_again() -> None:
    """The verdict on a killed consumer waits for its nodes to vanish and its partitions to be claimed (§3.2)."""
    seen = Seen(1000, "kill-consumer", "consumer-0", facts={"kind": "algorithm1"})
    frames = [
        frame(1000, {"0-0": "ada", "0-1": "bob"}),
        frame(2000, {"0-0": "ada", "0-1": "bob"}),
        frame(7000, {"0-1": "bob"}),
        frame(8000, {"0-0": "bob", "0-1": "bob"}),
    ]
    told = [verdict(seen, now, film(*frames)) for now in frames[1:]]

    assert [final for _, final in told] == [False, False, True]
    assert told[-1][0] == "as promised: 1 partition(s) had a new owner 7.0 s after the fault"


def test_events_are_written_for_people(tmp_path: Path) -> None:
    """Issue 22 B5: what happened is told without Python's brackets and quotes."""
    write(tmp_path, "c", event(1, "rebalance_done", consumer="a", owned=["t/0-0", "t/0-1"], clean=True))
    (told,) = Journals(tmp_path).read()

    assert told["text"] == "rebalance done: group g, consumer a, owned t/0-0 t/0-1, clean yes"
