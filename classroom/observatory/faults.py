"""Break something on purpose: what the paper promises beforehand, what was seen afterwards.

Only processes of the cluster's own directory can be struck, and only with ``--allow-faults``.

Paper: §3.2 (a consumer or broker goes), §3.3 (delivery and CRC), §4 (the audit notices loss).
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classroom.cluster.processes import Process, Processes
from classroom.observatory.frames import Film
from classroom.observatory.members import OF_MEMBERS, member_of
from classroom.observatory.redeliveries import Redeliveries
from classroom.observatory.verdicts import Seen, verdict
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error, WireError
from kafka2011.wire.entry import read_entry
from kafka2011.wire.message import LENGTH

PATIENCE_MS = 90_000
PAUSE_S = 15.0
"""Longer than the demo's ZooKeeper session, so that a pause is a death the consumer does not know of."""

DROP_FILE = "drop-one-in"
"""The demo's producers read this file: while it holds n, one batch in n is thrown away before it is sent."""


class FaultRefused(Kafka2011Error):
    """The fault cannot be done; nothing was broken."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault, as its card on the page says it."""

    name: str
    title: str
    verb: str
    promise: str
    targets: tuple[str, ...]
    """Kinds of processes."""
    beside: str
    """The pane on which one sees what it does."""


KINDS = (
    Kind(
        "kill-consumer",
        "Kill a consumer",
        "kill -9",
        "its ephemeral nodes vanish with its session (a modern member: the coordinator misses its heartbeats); the "
        "others are told, rebalance, and read on from the stored offsets. What it read after its last commit comes a "
        "second time.",
        ("consumer", "member"),
        "ownership",
    ),
    Kind(
        "pause-consumer",
        "Pause a consumer beyond its session",
        f"stop for {PAUSE_S:.0f} s",
        "the others take its partitions over. The paper does not say what happens when it wakes up: here its commits "
        "are refused (the fence), and it joins again as a new member.",
        ("consumer", "member"),
        "ownership",
    ),
    Kind(
        "expire-session",
        "Expire a consumer's session",
        "expire",
        "ZooKeeper forgets the consumer although it lives. It must forget what it owned, register again and rebalance.",
        ("consumer",),
        "ownership",
    ),
    Kind(
        "stop-broker",
        "Stop a broker",
        "stop",
        "its registration is ephemeral, so it leaves the registry; consumers give its partitions up, producers "
        "choose others. Messages on it wait, unreadable, until it is back.",
        ("broker",),
        "segments",
    ),
    Kind(
        "kill-leader",
        "Kill the leader",
        "kill -9",
        "another member in sync leads, once the session has ended; nothing a reader has seen is lost, and no offset "
        "changes its meaning (§3.3, the future work).",
        ("broker",),
        "segments",
    ),
    Kind(
        "delete-disk",
        "Delete a member's disk",
        "kill -9, and delete",
        "the member comes back as one that has nothing: it leaves the in-sync set, copies everything and is let in "
        "again. Without standbys \"any unconsumed message is lost forever\" (§3.3).",
        ("broker",),
        "segments",
    ),
    Kind(
        "cut-link",
        "Cut a member's link",
        f"silent for {PAUSE_S:.0f} s",
        "a follower that is not heard of leaves the in-sync set, and nobody waits for it; then it copies what it lacks "
        "and is let in. (It is stopped: to its leader that is the same.)",
        ("broker",),
        "segments",
    ),
    Kind(
        "start",
        "Start it again",
        "start",
        "a broker registers, and its partitions find owners again; a consumer joins its group and gets its share.",
        ("broker", "consumer", "member"),
        "",
    ),
    Kind(
        "flip-bit",
        "Flip a bit on a broker's disk",
        "flip",
        "every message has a CRC. A reader of this message notices and says where; it never skips in silence.",
        ("broker",),
        "segments",
    ),
    Kind(
        "drop-batches",
        "Lose one batch in a thousand",
        "switch",
        "producers get no acknowledgement, so nobody notices at once. The audit of §4 names windows and number.",
        ("activity",),
        "load",
    ),
)


class Faults:
    """Strike at the processes of one cluster directory. Thread: any; ``observe`` is called in the reactor."""

    def __init__(self, directory: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._directory, self._clock = directory, clock
        self._seen: list[Seen] = []
        self._unmarked: list[Seen] = []
        self._strikes: dict[str, Callable[[Process, Seen], str]] = {
            "kill-consumer": self._kill,
            "pause-consumer": self._pause,
            "expire-session": self._expire,
            "stop-broker": self._stop,
            "kill-leader": self._kill_leader,
            "delete-disk": self._delete_disk,
            "cut-link": self._pause_member,
            "start": self._start,
            "flip-bit": self._flip,
            "drop-batches": self._drop,
        }

    def as_view(self) -> dict[str, Any]:
        """What the page needs to draw the cards and, beside what they do, the buttons."""
        processes = Processes(self._directory)
        kinds = [
            {
                "name": kind.name,
                "title": kind.title,
                "verb": kind.verb,
                "promise": kind.promise,
                "beside": kind.beside,
                "targets": [
                    process.name
                    for target in kind.targets
                    for process in processes.of_kind(target)
                    if process.running != (kind.name == "start")
                    and (kind.name not in OF_MEMBERS or member_of(process) is not None)
                ],
            }
            for kind in KINDS
        ]
        return {"kinds": kinds, "seen": [_plain(seen) for seen in reversed(self._seen[-30:])]}

    def wish(self, wish: dict[str, Any]) -> dict[str, Any]:
        """``{name, target}``: do it, as the page asks for it."""
        return {"said": self.strike(str(wish["name"]), str(wish["target"]))}

    def newly_struck(self) -> list[dict[str, Any]]:
        """The faults since the last call, for the frame that shows them."""
        new, self._unmarked = self._unmarked, []
        return [{"t": seen.t, "title": _title(seen), "target": seen.target} for seen in new]

    def strike(self, name: str, target: str) -> str:
        """Do it; return one sentence. Blocks while the fault is carried out."""
        act = self._strikes.get(name)
        process = Processes(self._directory).all.get(target)
        if act is None or process is None:
            raise FaultRefused(f"there is no fault {name!r} for {target!r} here")
        kind = "modern" if process.kind == "member" else "algorithm1"
        seen = Seen(self._clock.wall_ms(), name, target, facts={"kind": kind, "pause_s": PAUSE_S})
        if name == "kill-consumer":
            seen.redeliveries = Redeliveries.after(self._directory, target)
        said = act(process, seen)
        self._seen.append(seen)
        self._unmarked.append(seen)
        return said

    def observe(self, film: Film) -> None:
        """Look at the newest frame for what became of each fault."""
        frame = film.at()
        assert frame is not None
        for seen in self._seen:
            if seen.final or frame["t"] < seen.t:
                continue
            seen.verdict, seen.final = verdict(seen, frame, film)
            if not seen.final and frame["t"] - seen.t > PATIENCE_MS:
                seen.verdict, seen.final = f"not settled after {PATIENCE_MS // 1000} s: {seen.verdict}", True

    # -- the acts -----------------------------------------------------------------------------------------------

    def _signal(self, process: Process, number: int) -> None:
        if not Processes(self._directory).send(process.name, number):
            raise FaultRefused(f"{process.name} does not run")

    def _kill(self, process: Process, seen: Seen) -> str:
        self._signal(process, signal.SIGKILL)
        return f"killed {process.name}"

    def _pause(self, process: Process, seen: Seen) -> str:
        self._signal(process, signal.SIGSTOP)
        wake = threading.Timer(PAUSE_S, lambda: Processes(self._directory).send(process.name, signal.SIGCONT))
        wake.daemon = True
        wake.start()
        return f"{process.name} stands still; it wakes in {PAUSE_S:.0f} s"

    def _expire(self, process: Process, seen: Seen) -> str:
        self._signal(process, signal.SIGUSR1)
        return f"{process.name} lost its ZooKeeper session"

    def _stop(self, process: Process, seen: Seen) -> str:
        self._signal(process, signal.SIGTERM)
        return f"{process.name} was told to stop"

    def _member(self, process: Process) -> str:
        """Which member a broker's process is; refused if its broker has no standbys."""
        member = member_of(process)
        if member is None:
            raise FaultRefused(f"{process.name} has no standbys: kafka2011 cluster up --standbys 1")
        return member

    def _kill_leader(self, process: Process, seen: Seen) -> str:
        seen.facts["member"] = self._member(process)
        self._signal(process, signal.SIGKILL)
        return f"{process.name} was killed"

    def _delete_disk(self, process: Process, seen: Seen) -> str:
        seen.facts["member"] = self._member(process)
        self._signal(process, signal.SIGKILL)
        processes = Processes(self._directory)
        while processes.all[process.name].running:
            self._clock.sleep(0.02)
        shutil.rmtree(self._directory / process.name)
        processes.start(processes.all[process.name])
        return f"{process.name} was killed, its disk deleted, and it is back with an empty one"

    def _pause_member(self, process: Process, seen: Seen) -> str:
        seen.facts["member"] = self._member(process)
        return self._pause(process, seen)

    def _start(self, process: Process, seen: Seen) -> str:
        if process.running:
            raise FaultRefused(f"{process.name} runs already")
        # It belongs to the cluster, not to the page: whoever takes the cluster down stops it, cleanly, with the rest.
        Processes(self._directory).start(process)
        return f"{process.name} is back"

    def _flip(self, process: Process, seen: Seen) -> str:
        """Flip one bit of the message in the middle of the largest segment file of this broker."""
        log_dir = self._directory / process.name
        files = sorted(log_dir.glob("*/*.kafka"), key=lambda path: path.stat().st_size)
        files = [path for path in files if not path.parent.name.startswith("__")]
        if not files or files[-1].stat().st_size < 64:
            raise FaultRefused(f"{process.name} has nothing on disk to damage yet")
        path = files[-1]
        place, reason = flip_in(path)
        topic, _, number = path.parent.name.rpartition("-")
        partition, offset = f"{process.name.rpartition('-')[2]}-{number}", int(path.stem) + place
        where = f"{topic} {partition}, the message at offset {offset:,} ({path.parent.name}/{path.name}, byte {place})"
        seen.link = {"topic": topic, "partition": partition, "from": str(offset)}
        seen.verdict, seen.final = f"as promised, whoever reads it notices: {where} {reason}", True
        return f"flipped a bit in {where}"

    def _drop(self, process: Process, seen: Seen) -> str:
        switch = self._directory / DROP_FILE
        seen.final = True
        if switch.exists():
            switch.unlink()
            seen.verdict = "nothing is dropped any more"
        else:
            switch.write_text("1000")
            seen.verdict = "one batch in a thousand is thrown away; the next load's audit tells"
        return seen.verdict


def flip_in(path: Path) -> tuple[int, str]:
    """Flip the last bit of the entry in the middle of a file; return where it begins and what a reader says of it."""
    with path.open("r+b") as file:
        data = file.read()
        place = entry_at(data, len(data) // 2)
        size = 4 + LENGTH.unpack_from(data, place)[0]
        file.seek(place + size - 1)
        file.write(bytes([data[place + size - 1] ^ 1]))
        file.flush()
        os.fsync(file.fileno())
        file.seek(place)
        entry = file.read(size)
    try:
        read_entry(entry, 0)
    except WireError as error:
        return place, str(error).removeprefix("the entry at byte 0 ")
    return place, "was damaged before, and is whole again"


def entry_at(data: bytes, wanted: int) -> int:
    """Where the entry that holds byte ``wanted`` begins, of entries that stand one after the other."""
    place = 0
    while (after := place + 4 + int(LENGTH.unpack_from(data, place)[0])) <= wanted and place < after <= len(data) - 4:
        place = after
    return place


def _title(seen: Seen) -> str:
    return next(kind.title for kind in KINDS if kind.name == seen.name)


def _plain(seen: Seen) -> dict[str, Any]:
    return {
        "t": seen.t,
        "title": _title(seen),
        "target": seen.target,
        "verdict": seen.verdict,
        "final": seen.final,
        "link": seen.link,
    }
