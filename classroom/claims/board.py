"""The claims on the page: a card for each with its last verdict, and a run that can be watched."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from classroom.claims.runs import kept, trial, trials
from kafka2011.child import die_with_parent
from kafka2011.errors import Kafka2011Error

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "results" / "claims"
"""The verdicts that come with the repository; an installed package has none."""
_SHOWN = ("verdict", "figure", "footnote", "date", "seconds", "scale")


class Busy(Kafka2011Error):
    """One experiment at a time: two would measure each other."""


class Board:
    """Verdicts from a directory, and one run at a time in a process of its own. Thread: any."""

    def __init__(self, results: Path, published: Path | None = None) -> None:
        self._results, self._published = results, published
        self._lock = threading.Lock()
        self._running: dict[str, Any] | None = None
        self._read_at = -1.0
        self._cards: list[dict[str, Any]] = []

    def as_view(self) -> dict[str, Any]:
        """What the pane shows. Pictures of earlier runs are asked for one by one (``result``)."""
        with self._lock:
            running = None if self._running is None else dict(self._running)
        return {"cards": self._known(), "running": running}

    def result(self, question: dict[str, str]) -> dict[str, Any]:
        """The last run of a claim, with its plot; for a claim that never ran here, of the published set."""
        number = trial(question["number"]).CLAIM.number
        found = self._results_of().get(number)
        if found is None:
            raise Kafka2011Error(f"{number} was not run yet")
        return found

    def run(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Start an experiment; it is watched in ``as_view``."""
        number = trial(str(wish["number"])).CLAIM.number
        with self._lock:
            if self._running is not None and not self._running["done"]:
                raise Busy(f"{self._running['number']} is running: one at a time, or they would measure each other")
            self._running = {"number": number, "plot": None, "points": [], "done": False, "said": "starting"}
        threading.Thread(target=self._watch, args=(number,), name=f"claim {number}", daemon=True).start()
        return {"said": f"{number} has begun"}

    def _watch(self, number: str) -> None:
        command = [sys.executable, "-m", "kafka2011", "claims", "run", number, "--quick", "--live"]
        process = subprocess.Popen(
            [*command, "--results", str(self._results)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent,
        )
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            try:
                self._note(json.loads(line))
            except ValueError:
                said = line.strip() or said  # an error, in words
        code = process.wait()
        with self._lock:
            assert self._running is not None
            failed = code not in (0, 3)
            self._running["done"] = True
            self._running["said"] = f"the experiment failed: {said}" if failed else "done"

    def _note(self, event: dict[str, Any]) -> None:
        with self._lock:
            assert self._running is not None
            if "plot" in event:
                self._running["plot"] = event["plot"]
            elif "point" in event:
                self._running["points"].append(event["point"])
                self._running["said"] = "measuring"

    def _known(self) -> list[dict[str, Any]]:
        """The cards; read again when a verdict has changed."""
        changed = max((path.stat().st_mtime for path in self._results.glob("C[0-9][0-9].json")), default=0.0)
        if changed != self._read_at:
            known = self._results_of()
            self._cards = [_card(one.CLAIM.number, known.get(one.CLAIM.number)) for one in trials()]
            self._read_at = changed
        return self._cards

    def _results_of(self) -> dict[str, dict[str, Any]]:
        """This machine's own verdicts, and for the rest those of the published set."""
        return (kept(self._published) if self._published else {}) | kept(self._results)


def _card(number: str, last: dict[str, Any] | None) -> dict[str, Any]:
    claim = trial(number).CLAIM
    words = {name: getattr(claim, name) for name in ("number", "section", "title", "sentence", "threshold", "dissent")}
    return words | ({name: last[name] for name in _SHOWN} if last else {"verdict": None})
