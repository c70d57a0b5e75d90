"""The history checker: it accepts what is legal and names each thing that is not."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.checker.checker import Checker
from tests.checker.history import Op

KEY = "t/0-0"


def good() -> list[Op]:
    """A run without faults: ten messages, a hand-over in peace, everything committed."""
    ops: list[Op] = []

    def add(proc: str, f: str, kind: str = "ok", **fields: object) -> None:
        ops.append({"t": len(ops), "proc": proc, "type": kind, "f": f} | fields)

    for i in range(10):
        add("p1", "send", "invoke", key=KEY, vals=[f"p1-{i}"])
        add("p1", "send", key=KEY, v=[[i * 10, i * 10 + 10, f"p1-{i}"]])
    for proc, first, last in (("c1", 0, 5), ("c2", 5, 10)):
        add(proc, "own", key=KEY, off=first * 10)
        for i in range(first, last):
            add(proc, "poll", key=KEY, v=[[i * 10, i * 10 + 10, f"p1-{i}"]])
            add(proc, "done", key=KEY, off=i * 10 + 10)
        add(proc, "commit", key=KEY, off=last * 10)
        if proc == "c1":
            add(proc, "release", key=KEY)
    return ops


def judged(ops: list[Op]) -> set[str]:
    return set(Checker(keys=[KEY], at_rest=True).check(ops).illegal)


def find(ops: list[Op], f: str, proc: str, nth: int = 0) -> int:
    return [i for i, op in enumerate(ops) if (op["f"], op["proc"], op["type"]) == (f, proc, "ok")][nth]


def drop(f: str, proc: str, nth: int = 0) -> Callable[[list[Op]], None]:
    return lambda ops: ops.__delitem__(find(ops, f, proc, nth))


def change(f: str, proc: str, nth: int = 0, **fields: object) -> Callable[[list[Op]], None]:
    return lambda ops: ops[find(ops, f, proc, nth)].update(fields)


def insert(at: tuple[str, str, int], **op: object) -> Callable[[list[Op]], None]:
    return lambda ops: ops.insert(find(ops, *at) + 1, {"t": 1000, "type": "ok"} | op)


def both(*mutations: Callable[[list[Op]], None]) -> Callable[[list[Op]], None]:
    def mutate(ops: list[Op]) -> None:
        for mutation in mutations:
            mutation(ops)

    return mutate


MUTATIONS: dict[str, tuple[Callable[[list[Op]], None], str]] = {
    "the last message is never delivered": (drop("poll", "c2", 4), "unseen"),
    "one in the middle is never delivered": (
        both(drop("poll", "c2", 0), change("own", "c2", off=60)),
        "lost-write",
    ),
    "a message is delivered again in peace": (change("poll", "c2", 0, v=[[40, 50, "p1-4"]]), "dup-delivery"),
    "the log holds a value twice": (
        insert(("send", "p1", 9), proc="p1", f="send", key=KEY, v=[[100, 110, "p1-3"]]),
        "dup-log",
    ),
    "acknowledged sends go back": (
        both(change("send", "p1", 4, v=[[50, 60, "p1-4"]]), change("send", "p1", 5, v=[[40, 50, "p1-5"]])),
        "reorder-send",
    ),
    "a delivery skips a message": (drop("poll", "c1", 2), "poll-skip"),
    "a delivery goes back": (change("poll", "c1", 3, v=[[10, 20, "p1-1"]]), "nonmono"),
    "two values at one offset": (change("poll", "c1", 1, v=[[10, 20, "p1-9"]]), "inconsistent-offset"),
    "two messages share bytes": (change("poll", "c1", 1, v=[[10, 25, "p1-1"]]), "overlap"),
    "a value from nowhere": (change("poll", "c2", 4, v=[[90, 100, "forged"]]), "phantom"),
    "a refused value is delivered": (
        both(change("send", "p1", 9, type="fail", vals=["p1-9"])),
        "aborted-read",
    ),
    "more is committed than finished": (change("commit", "c1", off=60), "commit-ahead"),
    "an offset goes back": (change("commit", "c2", off=40), "regress-commit"),
    "one who let go commits": (
        insert(("release", "c1", 0), proc="c1", f="commit", key=KEY, off=50),
        "commit-by-non-owner",
    ),
    "one who was never given it commits": (
        insert(("commit", "c2", 0), proc="c9", f="commit", key=KEY, off=100),
        "commit-by-non-owner",
    ),
    "two read at once": (drop("release", "c1"), "dual-fetch"),
    "nobody reads at the end": (insert(("commit", "c2", 0), proc="c2", f="release", key=KEY), "orphan"),
}


def test_a_good_run_is_valid() -> None:
    """A fault-free history in which all was delivered once and committed is valid (§3.3)."""
    assert judged(good()) == set()


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_is_named(name: str) -> None:
    """Every way to spoil the good history is found and called by its name."""
    mutate, anomaly = MUTATIONS[name]
    ops = copy.deepcopy(good())
    mutate(ops)
    # A message that jumps in ``overlap`` or ``nonmono`` may show in other ways too; its own name must be among them.
    for t, op in enumerate(ops):
        op["t"] = t
    assert anomaly in judged(ops)


def test_duplicates_after_a_fault_are_legal() -> None:
    """After a kill, what was delivered since the last commit may come again (§3.3)."""
    ops = good()
    change("poll", "c2", 0, v=[[40, 50, "p1-4"]])(ops)
    ops.insert(
        find(ops, "release", "c1"), {"t": 0, "proc": "n", "type": "info", "f": "fault", "name": "kill", "target": "c1"}
    )
    ops.insert(
        find(ops, "poll", "c2") + 1,
        {"t": 0, "proc": "c2", "type": "ok", "f": "poll", "key": KEY, "v": [[50, 60, "p1-5"]]},
    )
    for t, op in enumerate(ops):
        op["t"] = t
    report = Checker().check(ops)
    assert "dup-delivery" not in report.illegal and report.legal["dup-delivery"] == 1


def test_a_skip_with_a_recorded_reset_is_legal() -> None:
    """A skip is legal where an out-of-range event with both ends was recorded (§3.2)."""
    ops = good()
    at = find(ops, "poll", "c1", 2)
    del ops[at]
    ops.insert(at, {"t": 0, "proc": "c1", "type": "ok", "f": "out_of_range", "key": KEY, "off": 30})
    report = Checker(drained=False).check(ops)
    assert "poll-skip" not in report.illegal and report.legal["poll-skip"] == 1
