"""Announce how a load ended, however it ended: the report, the metrics file and the command of ``--notify``.

Each of the three is tried even if another fails: a full disk must not keep the pager silent. A load that ended before
there was anything to report on (no broker, no lock, a plan that no longer fits) is announced as well.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import click

from hadoop_etl import report as reports
from hadoop_etl.audit import Window
from hadoop_etl.errors import LoadLocked, WarehouseError
from hadoop_etl.failures import isolated, sentence
from hadoop_etl.job import Outcome
from hadoop_etl.plan import Plan, new_load
from hadoop_etl.state import KEEP_DAYS, save_report
from hadoop_etl.storage import local_path, write_text
from hadoop_etl.warehouse import Warehouse
from kafka2011.cli.output import note
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.failpoints import fail_point

PATIENCE_S = 60.0


@dataclass(slots=True)
class Announcer:
    """Where the end of a load is announced. Thread: one."""

    metrics_file: str | None = None
    notify: str | None = None
    keep_days: int = KEEP_DAYS
    clock: Clock = SYSTEM_CLOCK
    is_announced: bool = field(default=False, init=False)

    def announce(
        self, warehouse: Warehouse, outcome: Outcome, windows: Sequence[Window] = (), error: str | None = None
    ) -> dict[str, Any]:
        """Report on a load; returns the report."""
        report = reports.as_dict(outcome, windows, error)
        self._spread(report, outcome.plan, warehouse)
        return report

    @contextmanager
    def watching(self, where: str) -> Iterator[None]:
        """Announce the error that ends the block, unless its end was announced already; the error goes on."""
        try:
            with _ended_by_sigterm():
                yield
        except BaseException as error:
            if not self.is_announced and not (isinstance(error, SystemExit) and not error.code):
                with isolated(_complain):
                    self._announce_error(error, where)
            raise

    def _announce_error(self, error: BaseException, where: str) -> None:
        moment = self.clock.wall_ms()
        reason = sentence(error) if isinstance(error, Exception) else f"ended by {_name(error)}; run again"
        plan = Plan(new_load(moment), moment, where)
        report = reports.as_dict(Outcome(plan), [], reason)
        report["exit_code"] = getattr(error, "exit_code", reports.FAILED)
        # Nothing is written to the warehouse then: another command is using it, or it may not even be a warehouse.
        if isinstance(error, LoadLocked):
            report["state"] = "locked"
        is_ours = not isinstance(error, (LoadLocked, WarehouseError, click.UsageError))
        self._spread(report, plan, Warehouse(where) if is_ours else None)

    def _spread(self, report: dict[str, Any], plan: Plan, warehouse: Warehouse | None) -> None:
        self.is_announced = True
        place = None
        if warehouse is not None:
            with isolated(_complain):
                place = save_report(warehouse, report, plan, self.keep_days)
        if self.metrics_file:
            with isolated(_complain):
                write_text(self.metrics_file, reports.prometheus(report))
                file = local_path(self.metrics_file)
                if file is not None:
                    file.chmod(0o644)  # numbers, for the collector, which is another user
        fail_point("etl.report")
        if self.notify:
            with isolated(_complain):
                report["notified"] = self._run(place or _aside(report))

    def _run(self, place: str) -> bool:
        """Run the person's command with the path of the report; its failure is no failure of the load."""
        try:
            command = [*shlex.split(self.notify or ""), place]
            return subprocess.run(command, timeout=PATIENCE_S, check=False).returncode == 0
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            _complain(f"--notify: {sentence(error)}")
            return False


class _Ended(SystemExit):
    """Somebody asked this process to end. The exit code is the one a shell gives for that signal."""

    exit_code = 128 + signal.SIGTERM

    def __init__(self) -> None:
        super().__init__(self.exit_code)


def _name(error: BaseException) -> str:
    return "SIGTERM" if isinstance(error, _Ended) else type(error).__name__


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block like any other failure, so that it is announced."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Ended

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _aside(report: dict[str, Any]) -> str:
    """A place for a report the warehouse cannot take."""
    with tempfile.NamedTemporaryFile("w", prefix="kafka2011-etl-", suffix=".json", delete=False) as file:
        json.dump(report, file, indent=1)
    return file.name


def _complain(reason: str) -> None:
    note(f"kafka2011: the end of the load could not be announced in full: {reason}")
