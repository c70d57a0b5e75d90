"""Verdicts judge the whole promise and stay open until it is decided. Issue 22 B3 and B10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classroom.observatory.faults import Faults, flip_in
from classroom.observatory.frames import Frame
from classroom.observatory.redeliveries import Redeliveries
from classroom.observatory.verdicts import Seen, verdict
from kafka2011.wire import encode_set
from tests.unit.classroom.observatory.scenes import film, frame

BOTH = {"0-0": "ada", "0-1": "bob"}
NAMES = {"ada": "consumer-0", "bob": "consumer-1", "ada2": "consumer-0"}


def at(t: int, owners: dict[str, str], offset: int = 400, **more: Any) -> Frame:
    """A frame in which the group has stored ``offset`` for 0-0."""
    made = frame(t, owners, names=NAMES, **more)
    made["groups"]["g"]["offsets"] = {"clicks": {"0-0": offset, "0-1": 900}}
    return made


def write(directory: Path, reader: str, *offsets: int) -> None:
    path = directory / "deliveries" / f"g@{reader}.txt"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"clicks 0-0 {offset}\n" for offset in offsets)


def test_a_kill_is_judged_when_its_duplicates_are_counted(tmp_path: Path) -> None:
    """Issue 22 B3: the promise names duplicates, so the verdict waits until the others have come to where it stopped
    and says how many there were (§3.3)."""
    write(tmp_path, "consumer-0", 300, 400, 500, 600)
    write(tmp_path, "consumer-1", 10)
    seen = Seen(1000, "kill-consumer", "consumer-0", facts={"kind": "algorithm1"})
    seen.redeliveries = Redeliveries.after(tmp_path, "consumer-0")
    frames = [at(1000, BOTH), at(2000, BOTH), at(8000, {"0-0": "bob", "0-1": "bob"})]
    told = [verdict(seen, now, film(*frames)) for now in frames[1:]]
    write(tmp_path, "consumer-1", 400, 500)
    told.append(verdict(seen, at(9000, {"0-0": "bob", "0-1": "bob"}, 600), film(*frames)))
    write(tmp_path, "consumer-1", 600, 700)
    told.append(verdict(seen, at(10_000, {"0-0": "bob", "0-1": "bob"}, 800), film(*frames)))

    assert [final for _, final in told] == [False, False, False, True]
    assert "nobody reads its partitions" in told[0][0]
    assert "2 message(s) came a second time" in told[2][0]
    assert told[3][0] == (
        "as promised: 1 partition(s) had a new owner 7.0 s after the fault; 3 message(s) came a second time"
    )


def test_a_reader_without_a_ledger_has_no_duplicates_to_count(tmp_path: Path) -> None:
    """Where nobody writes down what was delivered, nothing is claimed of duplicates."""
    assert Redeliveries.after(tmp_path, "consumer-0") is None


def test_a_pause_is_judged_after_the_awakening() -> None:
    """Issue 22 B3: taken over is half of the promise; the verdict waits until the sleeper was fenced and is back."""
    seen = Seen(1000, "pause-consumer", "consumer-0", facts={"kind": "algorithm1", "pause_s": 15})
    fenced = {"t": 16_000, "source": "consumer-0", "event": "commit_fenced", "text": ""}
    mine = {"0-0": "bob", "0-1": "bob"}
    frames = [
        at(1000, BOTH),
        at(2000, BOTH, not_reading={"ada": "paused"}),
        at(8000, mine),
        at(16_500, mine, events=[fenced]),
        at(18_000, {"0-0": "ada2", "0-1": "bob"}),
    ]
    told = [verdict(seen, now, film(*frames)) for now in frames[1:]]

    assert [final for _, final in told] == [False, False, False, True]
    assert told[1][0].endswith("it has not joined again yet")
    assert told[-1][0] == (
        "as promised: 1 partition(s) had a new owner 7.0 s after the fault; its commit was refused; "
        "it joined again and owns its share, 17.0 s after"
    )


def test_a_pause_shorter_than_the_session_says_so() -> None:
    """A session that outlives the pause is no take-over, and no verdict waits for one."""
    seen = Seen(1000, "pause-consumer", "consumer-0", facts={"kind": "algorithm1", "pause_s": 15})
    frames = [at(1000, BOTH), at(15_000, BOTH), at(22_000, BOTH)]
    told = [verdict(seen, now, film(*frames)) for now in frames[1:]]

    assert [final for _, final in told] == [False, True]
    assert told[-1][0].startswith("its session outlived the pause")


def test_a_frame_from_before_the_fault_says_nothing_of_it(tmp_path: Path) -> None:
    """Issue 22 B5: no "after -0 s"."""
    faults = Faults(tmp_path)
    seen = Seen(1000, "kill-consumer", "consumer-0", facts={"kind": "algorithm1"})
    faults._seen.append(seen)
    faults.observe(film(at(999, BOTH)))
    assert seen.verdict == "watching…"
    assert verdict(seen, at(999, BOTH), film(at(999, BOTH)))[0].startswith("after 0 s ")


def test_a_flipped_bit_is_named_by_topic_partition_and_offset(tmp_path: Path) -> None:
    """Issue 22 B10: the verdict says which message fails, with its offset, and the page leads there (§3.3)."""
    directory = tmp_path / "broker-1" / "clicks-2"
    directory.mkdir(parents=True)
    payloads = [f"message {n}".encode() for n in range(20)]
    path = directory / f"{5000:020}.kafka"
    path.write_bytes(encode_set(payloads))
    (tmp_path / "cluster.json").write_text(
        '{"facts": {}, "processes": {"broker-1": {"name": "broker-1", "kind": "broker", "arguments": []}}}'
    )
    faults = Faults(tmp_path)
    said = faults.strike("flip-bit", "broker-1")
    (seen,) = faults.as_view()["seen"]
    offset = 5000 + len(encode_set(payloads[:10]))

    assert said.startswith(f"flipped a bit in clicks 1-2, the message at offset {offset:,}")
    assert seen["link"] == {"topic": "clicks", "partition": "1-2", "from": str(offset)}
    assert "fails its CRC" in seen["verdict"] and seen["final"]
    assert flip_in(path)[1] == "was damaged before, and is whole again"
    assert path.read_bytes() == encode_set(payloads)
