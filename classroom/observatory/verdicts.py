"""What became of a fault: judged against the whole promise, and open until that is decided.

Paper: §3.2 (the others take over), §3.3 (what was read after the last commit comes a second time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from classroom.observatory.frames import Film, Frame
from classroom.observatory.readers import called
from classroom.observatory.redeliveries import Redeliveries

Verdict = tuple[str, bool]
"""What can be said now, and whether it is the last word."""
Place = tuple[str, str, str]
"""Group, topic, partition."""

AWAKENING = {
    "delivery_held": "it held back what it had fetched",
    "commit_fenced": "its commit was refused",
    "session_lost": "it learned that its session was over",
}
"""Events of a consumer that wakes up after its session has ended, as the verdict says them."""


@dataclass(slots=True)
class Seen:
    """A fault that happened and what came of it; ``verdict`` grows until it is final."""

    t: int
    name: str
    target: str
    verdict: str = "watching…"
    final: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    link: dict[str, str] | None = None
    """Where on the page to look: topic, partition and from of Browse."""
    redeliveries: Redeliveries | None = None
    """Of a consumer that was struck: what the others were given again, where that is written down."""


def verdict(seen: Seen, frame: Frame, film: Film) -> Verdict:
    """What can be said now of a fault, and whether that is the last word."""
    seconds = max(frame["t"] - seen.t, 0) / 1000
    if "member" in seen.facts:
        return _of_member(seen, frame, film, seconds)
    if seen.target.startswith("broker-"):
        return _of_broker(seen, frame, seconds)
    kind = seen.facts["kind"]
    before = seen.facts.setdefault("before", _owned(film.at(seen.t), kind))
    seen.facts.setdefault("victims", _members(film.at(seen.t), seen.target))
    now = _owned(frame, kind)
    lost = [place for place in before if place not in now and place[1] in frame["topics"]]
    if seen.name in ("expire-session", "start"):
        return _of_return(seen, frame, seconds, len(lost), moved=before != now)
    if seen.name == "pause-consumer":
        return _of_pause(seen, frame, seconds, lost, now)
    return _of_kill(seen, frame, seconds, lost, now)


def _of_return(seen: Seen, frame: Frame, seconds: float, n_lost: int, *, moved: bool) -> Verdict:
    # Its id may stay the same, so the nodes alone do not tell; the consumer itself says when it has rebalanced.
    if any(_rebalanced(event, seen) for event in frame["events"]):
        seen.facts["back"] = True
    if not seen.facts.get("back") and not (seen.name == "start" and moved):
        return f"after {seconds:.0f} s it has not rebalanced yet", False
    if n_lost:
        return f"after {seconds:.0f} s {n_lost} partitions have no owner", False
    return f"as promised: it is a member again and every partition has an owner, {seconds:.1f} s after", True


def _of_kill(seen: Seen, frame: Frame, seconds: float, lost: list[Place], now: dict[Place, str]) -> Verdict:
    taken = _taken_over(seen, frame, seconds, lost, now)
    if isinstance(taken, str):
        return taken, False
    said = f"{taken[0]} partition(s) had a new owner {taken[1]:.1f} s after the fault"
    if seen.redeliveries is None:
        return f"as promised: {said}", True
    again, reached = seen.redeliveries.count(frame)
    if not reached:
        return f"{said}; they have not come yet to where it stopped, {again:,} message(s) came a second time", False
    return f"as promised: {said}; {again:,} message(s) came a second time", True


def _of_pause(seen: Seen, frame: Frame, seconds: float, lost: list[Place], now: dict[Place, str]) -> Verdict:
    """The promise has two halves: the others take over, and the sleeper wakes up without doing harm."""
    _remember_awakening(seen, frame)
    taken = _taken_over(seen, frame, seconds, lost, now)
    if isinstance(taken, str):
        if seconds < seen.facts.get("pause_s", 0) + 5 or "left" in seen.facts:
            return taken, False
        return "its session outlived the pause: nothing moved, and it reads on", True
    said = f"{taken[0]} partition(s) had a new owner {taken[1]:.1f} s after the fault"
    again = _members(frame, seen.target)
    if not again or not any(owner in again for owner in now.values()):
        return f"{said}; it has not joined again yet", False
    woke = "".join(f"; {says}" for name, says in AWAKENING.items() if name in seen.facts.get("woke", ()))
    return f"as promised: {said}{woke}; it joined again and owns its share, {seconds:.1f} s after", True


def _remember_awakening(seen: Seen, frame: Frame) -> None:
    told = {e["event"] for e in frame["events"] if e["source"] == seen.target and e["t"] > seen.t}
    seen.facts["woke"] = seen.facts.get("woke", set()) | (told & AWAKENING.keys())


def _taken_over(
    seen: Seen, frame: Frame, seconds: float, lost: list[Place], now: dict[Place, str]
) -> tuple[int, float] | str:
    """How many partitions have a new owner and after how long, once all have; until then, what is waited for."""
    if "taken" in seen.facts:
        taken: tuple[int, float] = seen.facts["taken"]
        return taken
    before: dict[Place, str] = seen.facts["before"]
    here = {member for group in frame["groups"].values() for member in group["members"]}
    victims = seen.facts["victims"] or set(before.values())
    if victims - here:
        seen.facts["left"] = True
    if "left" not in seen.facts:
        believer = "the coordinator still counts it" if seen.facts["kind"] == "modern" else "its nodes are still there"
        return f"after {seconds:.0f} s {believer}: the session has not timed out, and nobody reads its partitions"
    if lost:
        return f"after {seconds:.0f} s {len(lost)} partitions have no owner"
    seen.facts["taken"] = (sum(before[place] != now.get(place) for place in before), seconds)
    return _taken_over(seen, frame, seconds, lost, now)


def _members(frame: Frame | None, name: str) -> set[str]:
    """The members that a process of this name is."""
    if frame is None:
        return set()
    names = frame.get("names", {})
    members = (member for group in frame["groups"].values() for member in group["members"])
    return {member for member in members if called(member, names) == name}


def _rebalanced(event: dict[str, Any], seen: Seen) -> bool:
    return event["source"] == seen.target and "rebalance" in event and bool(event["t"] > seen.t)


def _of_member(seen: Seen, frame: Frame, film: Film, seconds: float) -> Verdict:
    """A member of a broker: another leads, or it is in sync again, and readers see no less than before."""
    number, member = seen.target.split("-")[1], seen.facts["member"]
    then = (film.at(seen.t) or {}).get("brokers", {}).get(number, {}).get("standby", {})
    now = frame["brokers"].get(number, {}).get("standby", {})
    if not now or not then or not frame["brokers"][number]["alive"]:
        return f"after {seconds:.0f} s nobody leads broker {number}", False
    less = _sees_less(film.at(seen.t), frame, number)
    if less:
        return f"after {seconds:.0f} s readers see less of {', '.join(less)} than before", False
    if seen.name == "kill-leader":
        if then["member"] != member:
            return f"{member} did not lead: nothing else happens until it is started again", True
        if now["epoch"] == then["epoch"]:
            return f"after {seconds:.0f} s its session has not ended", False
        leads = f"{now['member']} leads in epoch {now['epoch']}, {seconds:.1f} s after"
        return f"as promised: {leads}; nothing seen is lost", True
    if member not in now["in_sync"] and now["member"] != member:
        seen.facts["left"] = True
        return f"{member} is out of the in-sync set {', '.join(now['in_sync'])}, {seconds:.0f} s after", False
    if "left" not in seen.facts and seconds < seen.facts.get("pause_s", 0) + 5:
        return f"after {seconds:.0f} s {member} still counts as in sync", False
    back = f"{member} has everything again and is in sync, {seconds:.1f} s after"
    return f"as promised: {back}; nothing seen is lost", True


def _sees_less(then: Frame | None, now: Frame, number: str) -> list[str]:
    """Partitions of a broker whose readers see less than they saw."""
    found = []
    for topic, partitions in (then or {"topics": {}})["topics"].items():
        for name, known in partitions.items():
            seen_now = now["topics"].get(topic, {}).get(name, known)
            if name.startswith(f"{number}-") and "held" in known and seen_now["flushed"] < known["flushed"]:
                found.append(f"{topic} {name}")
    return found


def _of_broker(seen: Seen, frame: Frame, seconds: float) -> Verdict:
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


def _owned(frame: Frame | None, kind: str) -> dict[Place, str]:
    """Every partition's owner, over the groups of one kind."""
    return {
        (group, topic, name): owner
        for group, known in (frame["groups"] if frame else {}).items()
        if known["kind"] == kind
        for topic, owned in known["owners"].items()
        for name, owner in owned.items()
    }
