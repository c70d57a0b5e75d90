"""The loop consume, transform, produce under the same kills in its three orders."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

from classroom.semantics.producing import Bench
from classroom.semantics.verdict import Verdict, judge
from classroom.semantics.worker import MODES
from kafka2011.child import die_with_parent
from since2011.producer import Producer

_PATIENCE_S = 180


def looping(bench: Bench, records: int, kills: int) -> Iterator[tuple[str, Verdict, Verdict]]:
    """For each order: what readers of committed records see, and what lies in the log."""
    source = bench.topic("source")
    with Producer({"bootstrap.servers": bench.bootstrap}) as producer:
        for number in range(records):
            producer.send(source.topic, b"%d" % number)
    for mode in MODES:
        target = bench.topic(mode.replace(" ", "-"))
        for life in range(kills, -1, -1):
            _live(mode, bench, source.topic, target.topic, records, life)
        yield (
            mode,
            judge(records, bench.numbers(target, committed=True)),
            judge(records, bench.numbers(target)),
        )


def _live(mode: str, bench: Bench, source: str, target: str, end: int, life: int) -> None:
    """One life of the worker; all but the last end by SIGKILL."""
    words = [mode, bench.bootstrap, source, target, str(end), str(life)]
    ended = subprocess.run(
        [sys.executable, "-m", "classroom.semantics.worker", *words],
        capture_output=True, text=True, timeout=_PATIENCE_S, check=False, preexec_fn=die_with_parent,
    )  # fmt: skip
    if ended.returncode != (-signal.SIGKILL if life else 0):
        raise RuntimeError(f"the worker ({mode}) ended with {ended.returncode}: {ended.stderr.strip()[-800:]}")
