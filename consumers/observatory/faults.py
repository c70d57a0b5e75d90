"""Break something on purpose: what the paper promises beforehand, what was seen afterwards.

Only processes of the cluster's own directory can be struck, and only with ``--allow-faults``.

Paper: §3.2 (a consumer or broker goes), §3.3 (delivery and CRC), §4 (the audit notices loss).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumers.cluster.processes import Process, Processes
from consumers.observatory.frames import Film, Frame
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error

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


KINDS = (
    Kind(
        "kill-consumer",
        "Kill a consumer",
        "kill -9",
        "its ephemeral nodes vanish with its session; the others are told, rebalance, and read on from the stored "
        "offsets. What it read after its last commit comes a second time.",
        ("consumer", "member"),
    ),
    Kind(
        "pause-consumer",
        "Pause a consumer beyond its session",
        f"stop for {PAUSE_S:.0f} s",
        "the others take its partitions over. The paper does not say what happens when it wakes up: here its commits "
        "are refused (the fence), and it joins again as a new member.",
        ("consumer", "member"),
    ),
    Kind(
        "expire-session",
        "Expire a consumer's session",
        "expire",
        "ZooKeeper forgets the consumer although it lives. It must forget what it owned, register again and rebalance.",
        ("consumer",),
    ),
    Kind(
        "stop-broker",
        "Stop a broker",
        "stop",
        "its registration is ephemeral, so it leaves the registry; consumers give its partitions up, producers "
        "choose others. Messages on it wait, unreadable, until it is back.",
        ("broker",),
    ),
    Kind(
        "start",
        "Start it again",
        "start",
        "a broker registers, and its partitions find owners again; a consumer joins its group and gets its share.",
        ("broker", "consumer", "member"),
    ),
    Kind(
        "flip-bit",
        "Flip a bit on a broker's disk",
        "flip",
        "every message has a CRC. A reader of this message notices and says where; it never skips in silence.",
        ("broker",),
    ),
    Kind(
        "drop-batches",
        "Lose one batch in a thousand",
        "switch",
        "producers get no acknowledgement, so nobody notices at once. The audit of §4 names windows and number.",
        ("activity",),
    ),
)


@dataclass(slots=True)
class Seen:
    """A fault that happened and what came of it; ``verdict`` grows until it is final."""

    t: int
    name: str
    target: str
    verdict: str = "watching…"
    final: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


class Faults:
    """Strike at the processes of one cluster directory. Thread: any; ``observe`` is called in the reactor."""

    def __init__(self, directory: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._directory, self._clock = directory, clock
        self._seen: list[Seen] = []
        self._owners: dict[str, str] = {}
        self._strikes: dict[str, Callable[[Process], str]] = {
            "kill-consumer": self._kill,
            "pause-consumer": self._pause,
            "expire-session": self._expire,
            "stop-broker": self._stop,
            "start": self._start,
            "flip-bit": self._flip,
            "drop-batches": self._drop,
        }

    def as_view(self, token: str) -> dict[str, Any]:
        """What the page needs to draw the cards."""
        processes = Processes(self._directory)
        kinds = [
            {
                "name": kind.name,
                "title": kind.title,
                "verb": kind.verb,
                "promise": kind.promise,
                "token": token,
                "targets": [
                    process.name
                    for target in kind.targets
                    for process in processes.of_kind(target)
                    if process.running != (kind.name == "start")
                ],
            }
            for kind in KINDS
        ]
        return {"kinds": kinds, "seen": [_plain(seen) for seen in reversed(self._seen[-30:])]}

    def strike(self, name: str, target: str) -> str:
        """Do it; return one sentence. Blocks while the fault is carried out."""
        act = self._strikes.get(name)
        process = Processes(self._directory).all.get(target)
        if act is None or process is None:
            raise FaultRefused(f"there is no fault {name!r} for {target!r} here")
        kind = "modern" if process.kind == "member" else "algorithm1"
        self._seen.append(Seen(self._clock.wall_ms(), name, target, facts={"kind": kind}))
        return act(process)

    def observe(self, film: Film) -> None:
        """Look at the newest frame for what became of each fault."""
        frame = film.at()
        assert frame is not None
        for seen in self._seen:
            if seen.final:
                continue
            seen.verdict, seen.final = _verdict(seen, frame, film)
            if not seen.final and frame["t"] - seen.t > PATIENCE_MS:
                seen.verdict, seen.final = f"not settled after {PATIENCE_MS // 1000} s: {seen.verdict}", True

    # -- the acts -----------------------------------------------------------------------------------------------

    def _signal(self, process: Process, number: int) -> None:
        if not Processes(self._directory).send(process.name, number):
            raise FaultRefused(f"{process.name} does not run")

    def _kill(self, process: Process) -> str:
        self._signal(process, signal.SIGKILL)
        return f"killed {process.name}"

    def _pause(self, process: Process) -> str:
        self._signal(process, signal.SIGSTOP)
        wake = threading.Timer(PAUSE_S, lambda: Processes(self._directory).send(process.name, signal.SIGCONT))
        wake.daemon = True
        wake.start()
        return f"{process.name} stands still; it wakes in {PAUSE_S:.0f} s"

    def _expire(self, process: Process) -> str:
        self._signal(process, signal.SIGUSR1)
        return f"{process.name} lost its ZooKeeper session"

    def _stop(self, process: Process) -> str:
        self._signal(process, signal.SIGTERM)
        return f"{process.name} was told to stop"

    def _start(self, process: Process) -> str:
        if process.running:
            raise FaultRefused(f"{process.name} runs already")
        # It belongs to the cluster, not to the page: whoever takes the cluster down stops it, cleanly, with the rest.
        Processes(self._directory).start(process)
        return f"{process.name} is back"

    def _flip(self, process: Process) -> str:
        """Flip one bit in the middle of the largest segment file of this broker."""
        log_dir = self._directory / process.name
        files = sorted(log_dir.glob("*/*.kafka"), key=lambda path: path.stat().st_size)
        files = [path for path in files if not path.parent.name.startswith("__")]
        if not files or files[-1].stat().st_size < 64:
            raise FaultRefused(f"{process.name} has nothing on disk to damage yet")
        path, position = files[-1], files[-1].stat().st_size // 2
        with path.open("r+b") as file:
            file.seek(position)
            byte = file.read(1)[0]
            file.seek(position)
            file.write(bytes([byte ^ 1]))
            os.fsync(file.fileno())
        where = f"{path.parent.name}/{path.name} at byte {position}"
        self._seen[-1].final = True
        self._seen[-1].verdict = f"flipped a bit in {where}; browse there, or run `kafka2011 log verify`"
        return f"flipped a bit in {where}"

    def _drop(self, process: Process) -> str:
        switch = self._directory / DROP_FILE
        self._seen[-1].final = True
        if switch.exists():
            switch.unlink()
            self._seen[-1].verdict = "nothing is dropped any more"
        else:
            switch.write_text("1000")
            self._seen[-1].verdict = "one batch in a thousand is thrown away; the next load's audit tells"
        return self._seen[-1].verdict


def _plain(seen: Seen) -> dict[str, Any]:
    title = next(kind.title for kind in KINDS if kind.name == seen.name)
    return {"t": seen.t, "title": title, "target": seen.target, "verdict": seen.verdict, "final": seen.final}


def _verdict(seen: Seen, frame: Frame, film: Film) -> tuple[str, bool]:
    """What can be said now of a fault, and whether that is the last word."""
    seconds = (frame["t"] - seen.t) / 1000
    if seen.target.startswith("broker-"):
        return _broker_verdict(seen, frame, seconds)
    kind = seen.facts["kind"]
    before = seen.facts.setdefault("before", _owned(film.at(seen.t), kind))
    now = _owned(frame, kind)
    lost = [place for place in before if place not in now and place[1] in frame["topics"]]
    moved = sum(before[place] != now.get(place) for place in before)
    if seen.name in ("expire-session", "start"):
        # Its id may stay the same, so the nodes alone do not tell; the consumer itself says when it has rebalanced.
        if any(_rebalanced(event, seen) for event in frame["events"]):
            seen.facts["back"] = True
        if not seen.facts.get("back") and not (seen.name == "start" and moved):
            return f"after {seconds:.0f} s it has not rebalanced yet", False
        if lost:
            return f"after {seconds:.0f} s {len(lost)} partitions have no owner", False
        return f"as promised: it is a member again and every partition has an owner, {seconds:.1f} s after", True
    gone = set(before.values()) - {member for group in frame["groups"].values() for member in group["members"]}
    if gone:
        seen.facts["left"] = True
    if not seen.facts.get("left"):
        return f"after {seconds:.0f} s its nodes are still there: the session has not timed out", False
    if lost:
        return f"after {seconds:.0f} s {len(lost)} partitions have no owner", False
    return f"as promised: {moved} partition(s) had a new owner {seconds:.1f} s after the fault", True


def _rebalanced(event: dict[str, Any], seen: Seen) -> bool:
    return event["source"] == seen.target and "rebalance" in event and bool(event["t"] > seen.t)


def _broker_verdict(seen: Seen, frame: Frame, seconds: float) -> tuple[str, bool]:
    number = seen.target.rpartition("-")[2]
    alive = bool(frame["brokers"].get(number, {}).get("alive"))
    if alive != (seen.name == "start"):
        return f"after {seconds:.0f} s the registry has not changed", False
    mine = [place for place in _owned(frame, seen.facts["kind"]) if place[2].startswith(f"{number}-")]
    if seen.name == "stop-broker":
        if mine:
            return f"it left the registry; {len(mine)} of its partitions still have an owner", False
        return f"as promised: it left the registry and its partitions were given up, {seconds:.1f} s after", True
    if not mine:
        return "it is registered again; its partitions wait for owners", False
    return f"as promised: {len(mine)} of its partitions are owned again, {seconds:.1f} s after", True


def _owned(frame: Frame | None, kind: str) -> dict[tuple[str, str, str], str]:
    """(group, topic, partition) -> owner, over the groups of one kind."""
    return {
        (group, topic, name): owner
        for group, known in (frame["groups"] if frame else {}).items()
        if known["kind"] == kind
        for topic, owned in known["owners"].items()
        for name, owner in owned.items()
    }
