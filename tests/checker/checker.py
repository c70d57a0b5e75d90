"""Judge a history: which anomalies happened, and whether each was legal.

Byte offsets make it exact: each message states its successor, so a skip or an overlap needs no inference.

| anomaly | what it is | legal |
|---|---|---|
| unseen | an acknowledged message never delivered, though the group was drained to the end | never |
| lost-write | the same, and something after it was delivered | never |
| dup-delivery | one offset delivered twice in the group | only after a fault of that group (§3.3) |
| dup-log | one value at two offsets | if the producer was not sure (a send of type info) |
| reorder-send | one producer's acknowledged sends to a partition with decreasing offsets | never |
| poll-skip | a delivery does not begin where the last of the same ownership ended | only with an out_of_range |
| nonmono | a delivery goes back within one ownership | never |
| inconsistent-offset | two values at one offset | never |
| overlap | two messages share bytes | never |
| phantom | a value nobody sent | never |
| aborted-read | a value whose send certainly failed was delivered | never |
| commit-ahead | an offset committed beyond what was delivered and finished | never |
| regress-commit | a committed offset went back | never |
| commit-by-non-owner | a commit by a process that does not hold the partition | never |
| dual-fetch | two processes deliver one partition while both hold it | only around a fault of one of them |
| orphan | a partition of the run without an owner at the end | never |

A run is valid if nothing illegal happened and enough happened at all.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.checker.history import Op


@dataclass
class Report:
    """The verdict, with an example of each anomaly."""

    illegal: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    legal: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def valid(self) -> bool:
        return not self.illegal

    def __str__(self) -> str:
        told = "; ".join(f"{name} x{len(where)}, first: {where[0]}" for name, where in sorted(self.illegal.items()))
        return (told or "valid") + f" ({dict(self.counts)}, legal: {dict(self.legal)})"


class Checker:
    """One pass over a history in the order of time, and one judgement at its end."""

    def __init__(self, *, drained: bool = True, keys: Iterable[str] = (), at_rest: bool = False) -> None:
        """``drained``: the group read to the end. ``keys``: partitions that must be owned at the end (``at_rest``)."""
        self._drained, self._keys, self._at_rest = drained, set(keys), at_rest
        self.report = Report()
        self._sent: dict[str, str] = {}  # value -> ok, info or fail
        self._at: dict[tuple[str, int], tuple[int, str]] = {}  # (key, offset) -> (next, value)
        self._places: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._acked: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._last_send: dict[tuple[str, str], int] = {}
        self._seen: dict[tuple[str, int], int] = {}  # (key, offset) -> time of first delivery
        self._delivered_to: Counter[str] = Counter()
        self._position: dict[tuple[str, str], int] = {}  # (proc, key) -> next of the last delivery in this ownership
        self._finished: dict[tuple[str, str], int] = {}
        self._started: dict[tuple[str, str], int] = {}  # (proc, key) -> where this ownership began
        self._resets: set[tuple[str, str]] = set()
        self._holders: dict[str, set[str]] = defaultdict(set)
        self._committed: dict[str, int] = {}
        self._last_fault = -1
        self._faulty: set[str] = set()

    def check(self, history: Iterable[Op]) -> Report:
        for op in history:
            self.report.counts[f"{op['f']}:{op['type']}"] += 1
            getattr(self, f"_on_{op['f']}", lambda op: None)(op)
        self._judge()
        self.report.illegal = dict(self.report.illegal)
        return self.report

    # -- what happened ----------------------------------------------------------------------------------------------

    def _on_send(self, op: Op) -> None:
        if op["type"] in ("invoke", "info", "fail"):
            for value in op.get("vals", ()):
                if self._sent.get(value) != "ok":
                    self._sent[value] = "info" if op["type"] == "invoke" else op["type"]
            return
        key, producer = op["key"], op["proc"]
        for offset, after, value in op["v"]:
            self._sent[value] = "ok"
            self._place(key, offset, after, value)
            self._acked[key].append((offset, value))
            if offset < self._last_send.get((producer, key), -1):
                self._bad("reorder-send", op, f"{value} at {offset}")
            self._last_send[producer, key] = offset

    def _on_poll(self, op: Op) -> None:
        key, proc = op["key"], op["proc"]
        for offset, after, value in op["v"]:
            self._place(key, offset, after, value)
            expected = self._position.get((proc, key))
            if expected is not None and offset > expected:
                if (proc, key) in self._resets:
                    self.report.legal["poll-skip"] += 1
                else:
                    self._bad("poll-skip", op, f"from {expected} to {offset}")
            elif expected is not None and offset < expected:
                self._bad("nonmono", op, f"from {expected} back to {offset}")
            self._position[proc, key] = after
            self._resets.discard((proc, key))
            first = self._seen.setdefault((key, offset), op["t"])
            if first != op["t"] or self._delivered_to[f"{key}@{offset}"]:
                if self._last_fault >= 0:
                    self.report.legal["dup-delivery"] += 1
                else:
                    self._bad("dup-delivery", op, f"{value} at {offset}")
            self._delivered_to[f"{key}@{offset}"] += 1
            if value not in self._sent:
                self._bad("phantom", op, value)
            elif self._sent[value] == "fail":
                self._bad("aborted-read", op, value)
        others = {holder for holder in self._holders[key] if holder != proc}
        if others and proc in self._holders[key]:
            if others & self._faulty or proc in self._faulty:
                self.report.legal["dual-fetch"] += 1
            else:
                self._bad("dual-fetch", op, f"also held by {sorted(others)}")

    def _on_done(self, op: Op) -> None:
        key = op["key"]
        self._finished[op["proc"], key] = max(self._finished.get((op["proc"], key), 0), op["off"])

    def _on_commit(self, op: Op) -> None:
        if op["type"] != "ok":
            return
        key, proc, offset = op["key"], op["proc"], op["off"]
        if proc not in self._holders[key]:
            self._bad("commit-by-non-owner", op, str(offset))
        reached = max(self._finished.get((proc, key), 0), self._started.get((proc, key), 0))
        if offset > reached:
            self._bad("commit-ahead", op, f"{offset} where {reached} was finished")
        if offset < self._committed.get(key, 0):
            self._bad("regress-commit", op, f"from {self._committed[key]} to {offset}")
        self._committed[key] = offset

    def _on_own(self, op: Op) -> None:
        key, proc = op["key"], op["proc"]
        self._holders[key].add(proc)
        self._position.pop((proc, key), None)
        if "off" in op:
            self._started[proc, key] = op["off"]

    def _on_release(self, op: Op) -> None:
        self._holders[op["key"]].discard(op["proc"])
        self._position.pop((op["proc"], op["key"]), None)

    def _on_out_of_range(self, op: Op) -> None:
        self._resets.add((op["proc"], op["key"]))
        self._started[op["proc"], op["key"]] = op["off"]

    def _on_fault(self, op: Op) -> None:
        self._last_fault = op["t"]
        target = op.get("target", "")
        self._faulty |= {target} | {p for ps in self._holders.values() for p in ps if p.split("#")[0] == target}
        if op.get("name") == "kill":
            # The dead hold nothing; what they held is taken over when their session ends.
            for holders in self._holders.values():
                holders -= {p for p in holders if p == target or p.split("#")[0] == target}

    # -- what it means ----------------------------------------------------------------------------------------------

    def _place(self, key: str, offset: int, after: int, value: str) -> None:
        before = self._at.setdefault((key, offset), (after, value))
        if before[0] < after:
            self._at[key, offset] = after, before[1]
        if before[1] != value:
            self.report.illegal["inconsistent-offset"].append(f"{key}@{offset}: {before[1]} and {value}")
        self._places[value].add((key, offset))

    def _judge(self) -> None:
        for value, places in self._places.items():
            if len(places) > 1:
                if self._sent.get(value) == "info":
                    self.report.legal["dup-log"] += 1
                else:
                    self.report.illegal["dup-log"].append(f"{value} at {sorted(places)}")
        by_key: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (key, offset), (after, _) in self._at.items():
            by_key[key].append((offset, after))
        for key, frames in by_key.items():
            frames.sort()
            for (o1, n1), (o2, _) in itertools.pairwise(frames):
                if o2 < n1:
                    self.report.illegal["overlap"].append(f"{key}: {o1}-{n1} and {o2}")
        if self._drained:
            for key, sent in self._acked.items():
                end = max((offset for k, offset in self._seen if k == key), default=-1)
                for offset, value in sent:
                    if (key, offset) not in self._seen:
                        name = "lost-write" if offset < end else "unseen"
                        self.report.illegal[name].append(f"{value} at {key}@{offset}")
        if self._at_rest:
            for key in self._keys:
                if not self._holders[key]:
                    self.report.illegal["orphan"].append(key)

    def _bad(self, name: str, op: Op, what: str) -> None:
        place: Any = op.get("key", "")
        self.report.illegal[name].append(f"{op['proc']} {place}: {what}")
