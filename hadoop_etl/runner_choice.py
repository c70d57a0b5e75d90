"""Which runner for this load: the one asked for, or one chosen by size.

Starting Spark costs seconds before the first message is read. A load that is done by then needs no Spark; a large one
is faster on all cores, and the largest on a cluster. The runner is started when there is something to run: after the
lock was taken and the plan made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from hadoop_etl.errors import LoadError
from hadoop_etl.events import RunnerChosen
from hadoop_etl.runners import OnProgress, Runner, SparkRunner
from hadoop_etl.work import Result, Work
from hadoop_etl.worker import WorkerRunner
from kafka2011.events import Journal

INLINE = "inline"
SPARK = "local[*]"
SPARK_FROM = 2 << 30
"""Bytes from which Spark on this machine pays, where nobody says what to use (docs/etl.md has the measurement)."""


class ChosenRunner:
    """Starts the right runner when it is needed. Thread: one."""

    def __init__(
        self,
        master: str | None,
        journal: Journal,
        *,
        py_files: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._master, self._journal = master, journal
        self._py_files, self._settings = py_files, settings
        self._runner: Runner | None = None
        self._stop: Callable[[], None] = lambda: None

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        if self._runner is None:
            master = self._choose(works)
            self._runner = self._inline() if master == INLINE else self._spark(master)
        return self._runner.run(works, on_progress)

    def close(self) -> None:
        """Stop what was started. A JVM that is gone already has had its say when the load failed."""
        # Stopping what is dead raises what it likes; the first failure is the one to report.
        with suppress(Exception):
            self._stop()

    def _choose(self, works: Sequence[Work]) -> str:
        size = sum(work.split.end - work.split.start for work in works)
        if self._master is not None:
            master, why = self._master, "as asked for"
        elif self._py_files or self._settings:
            master, why = SPARK, "settings for Spark were given"
        else:
            few = size < SPARK_FROM
            master = INLINE if few else SPARK
            why = f"{size / 1e6:.1f} MB are {'less' if few else 'not less'} than {SPARK_FROM / 1e6:.0f} MB"
        self._journal.emit(RunnerChosen(load=works[0].load if works else "", master=master, why=why))
        return master

    def _inline(self) -> Runner:
        runner = WorkerRunner()
        self._stop = runner.close
        return runner

    def _spark(self, master: str) -> Runner:
        from hadoop_etl.spark import start_context

        try:
            context = start_context(master, py_files=self._py_files, settings=self._settings)
        except OSError as error:
            raise LoadError(f"Spark could not be started: {error}; nothing was published") from error
        self._stop = context.stop
        return SparkRunner(context)
