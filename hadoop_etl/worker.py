"""A worker process for loads without Spark: what kills a task does not kill the night.

The command starts this module as a program of its own and talks to it through pipes, in pickles: works one way, what
became of each the other way, as it happens. Inside it is the same threads as ever (``InlineRunner``). If the worker is
gone, the splits it was at are run again one by one, each by a new worker; the one that dies again is lost, and only it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from hadoop_etl.errors import LoadError
from hadoop_etl.runners import InlineRunner, OnProgress
from hadoop_etl.work import LostSplit, Result, Work
from kafka2011.child import die_with_parent

OnResult = Callable[[int, Result | None, int], None]
"""Called with the number of a work, what became of it (nothing yet: it is tried again) and new failures."""

MOST_STARTS = 3
"""Workers that may die before they began anything, one after the other."""


class WorkerRunner:
    """Runs splits in a process beside this one, which may die. Thread: one."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        waiting = dict(enumerate(works))
        results: list[Result] = []
        suspects: list[int] = []
        vain = failures = 0

        def on_result(number: int, result: Result | None, failed: int) -> None:
            nonlocal failures
            failures += failed
            if result is not None:
                del waiting[number]
                results.append(result)
            on_progress(len(results), failures)

        while waiting:
            chosen = [suspects.pop()] if suspects else list(waiting)
            began, death = self._round({number: waiting[number] for number in chosen}, on_result)
            if death is None:
                continue
            failures += 1
            vain = 0 if began else vain + 1
            if vain >= MOST_STARTS:
                raise LoadError(f"no worker process can be started: {death}; nothing was published")
            at_work = [number for number in chosen if number in began and number in waiting]
            if len(chosen) == 1 and at_work:
                work = waiting.pop(chosen[0])
                where = f"{work.topic} {work.part} at {work.split.start}"
                results.append(LostSplit(work, f"the worker process died of the task for {where}: {death}", died=True))
            else:
                suspects += at_work
        return results

    def close(self) -> None:
        """End the worker."""
        if self._process is not None and self._process.stdin is not None and self._process.stdout is not None:
            self._process.kill()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()
            self._process = None

    def _round(self, works: Mapping[int, Work], on_result: OnResult) -> tuple[set[int], str | None]:
        """Let the worker run these; returns which it began, and how it died if it did."""
        began: set[int] = set()
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(dict(works), process.stdin)
            process.stdin.flush()
            while True:
                kind, number, result, failed = pickle.load(process.stdout)  # noqa: S301 - our own child
                if kind == "began":
                    began.add(number)
                elif kind == "result":
                    on_result(number, result, failed)
                else:
                    return began, None
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = process.wait()
            self.close()
            return began, _death(code)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "hadoop_etl.worker", str(self._threads or 0)]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, preexec_fn=die_with_parent
        )


def _death(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def serve(source: BinaryIO, sink: BinaryIO, threads: int | None) -> None:
    """Run what comes until nobody sends any more."""
    runner = InlineRunner(threads)
    lock = threading.Lock()

    def say(kind: str, number: int = 0, result: Result | None = None, failed: int = 0) -> None:
        with lock:
            pickle.dump((kind, number, result, failed), sink)
            sink.flush()

    while True:
        try:
            works: dict[int, Work] = pickle.load(source)  # noqa: S301 - from who started us
        except EOFError:
            return
        for number, result, failed in runner.each(works, lambda number: say("began", number)):
            say("result", number, result, failed)
        say("end")


def main() -> None:
    """Serve the process that started this one. Its pipes are ours alone: whatever prints, prints to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, sink, int(sys.argv[1]) or None)


if __name__ == "__main__":
    main()
