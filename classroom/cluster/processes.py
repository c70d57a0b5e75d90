"""The processes of a cluster, remembered in one file so that any shell can look after them.

``<directory>/cluster.json`` holds for each process its name, kind, command, pid, start time and what its
ready-file said (ports). It is read before every step and written whole (temporary file, rename) after every change,
because others (a second shell, the page's Faults pane) start and kill processes, too. What it says is checked against
the kernel, so a status never repeats what the file merely remembers.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafka2011.child import die_with_parent, is_alive, signal_process, start_time
from kafka2011.errors import Kafka2011Error


class ClusterError(Kafka2011Error):
    """The cluster cannot be brought to the state that was asked for."""


@dataclass(slots=True)
class Process:
    """One remembered process. ``started`` is None while it never ran."""

    name: str
    kind: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    started: int | None = None
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """True while exactly this process lives."""
        return self.pid > 0 and self.started is not None and is_alive(self.pid, self.started)

    @property
    def paused(self) -> bool:
        """True while it lives but is stopped by SIGSTOP."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except (FileNotFoundError, ProcessLookupError):
            return False


class Processes:
    """Start, find and stop the processes of one directory. Thread: one."""

    def __init__(self, directory: Path, *, with_parent: bool = False) -> None:
        self.directory = directory
        self._with_parent = with_parent
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._file = directory / "cluster.json"
        self.facts: dict[str, Any] = {}
        self._all: dict[str, Process] = {}
        self.load()

    @property
    def all(self) -> dict[str, Process]:
        """Every process by name, as the file has it now."""
        self._refresh()
        return self._all

    def load(self) -> None:
        """Read the file; a missing one is an empty cluster."""
        self.facts = self._content()["facts"]
        self._refresh()

    def _refresh(self) -> None:
        """Read the processes again: someone else may have started one. The facts stay as this object has them."""
        try:
            self._all = {name: Process(**known) for name, known in self._content()["processes"].items()}
        except TypeError as error:
            raise ClusterError(f"{self._file} cannot be read ({error}); remove it to start afresh") from error

    def _content(self) -> dict[str, dict[str, Any]]:
        if not self._file.exists():
            return {"facts": {}, "processes": {}}
        try:
            content: dict[str, dict[str, Any]] = json.loads(self._file.read_text())
            if not content.keys() >= {"facts", "processes"}:
                raise ValueError("something is missing")
        except (ValueError, AttributeError) as error:
            raise ClusterError(f"{self._file} cannot be read ({error}); remove it to start afresh") from error
        return content

    def _remember(self, process: Process) -> None:
        """Write one process down; what others wrote meanwhile stays."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "cluster.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._refresh()
            self._all[process.name] = process
            self.save()

    def save(self) -> None:
        """Write the file whole or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".new")
        known = {name: asdict(process) for name, process in self._all.items()}
        temporary.write_text(json.dumps({"facts": self.facts, "processes": known}, indent=1))
        os.replace(temporary, self._file)

    def start(self, process: Process, *, timeout_s: float = 60.0) -> Process:
        """Start ``python -m <arguments>`` unless it runs; return when its ready-file is there."""
        self._start_without_waiting(process)
        self.wait_ready(process.name, timeout_s)
        return self.all[process.name]

    def start_together(self, processes: list[Process], *, timeout_s: float = 60.0) -> None:
        """Start several at once and wait for all: their start-up times overlap."""
        for process in processes:
            self._start_without_waiting(process)
        for process in processes:
            self.wait_ready(process.name, timeout_s)

    def _start_without_waiting(self, process: Process) -> None:
        known = self.all.get(process.name)
        if known is not None and known.running:
            return
        ready_file = self._ready_file(process.name)
        ready_file.parent.mkdir(parents=True, exist_ok=True)
        ready_file.unlink(missing_ok=True)
        log = self.log_file(process.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", *process.arguments, "--ready-file", str(ready_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | process.environment,
                start_new_session=True,
                preexec_fn=die_with_parent if self._with_parent else None,
            )
        self._children[child.pid] = child
        process.pid, process.started, process.ready = child.pid, start_time(child.pid), {}
        self._remember(process)

    def wait_ready(self, name: str, timeout_s: float) -> None:
        """Wait for the ready-file of ``name``; say why, with its last words, if it ends instead."""
        process, ready_file = self.all[name], self._ready_file(name)
        deadline = time.monotonic() + timeout_s
        while not ready_file.exists():
            if not process.running:
                self._reap(process)
                raise ClusterError(f"{name} ended while starting: {self.last_words(name)} (log: {self.log_file(name)})")
            if time.monotonic() > deadline:
                raise ClusterError(f"{name} is not ready after {timeout_s:.0f} s (log: {self.log_file(name)})")
            time.sleep(0.02)
        process.ready = json.loads(ready_file.read_text() or "{}")
        process.arguments = _with_ports(process.arguments, process.ready)
        self._remember(process)

    def send(self, name: str, number: int) -> bool:
        """Send a signal to ``name``; False if it does not run."""
        processes = self.all
        if name not in processes:
            known = ", ".join(sorted(processes)) or "nothing"
            raise ClusterError(f"there is no {name!r} in this cluster; it has {known}")
        process = processes[name]
        return process.started is not None and signal_process(process.pid, process.started, number)

    def stop(self, names: list[str], *, timeout_s: float = 15.0, say: Callable[[str], None] | None = None) -> None:
        """SIGTERM all of ``names`` at once, wait, SIGKILL what is left."""
        for name in names:
            # A paused process would never see SIGTERM.
            if self.send(name, signal.SIGTERM):
                self.send(name, signal.SIGCONT)
        deadline = time.monotonic() + timeout_s
        for name in names:
            process = self.all[name]
            while process.running and time.monotonic() < deadline:
                self._reap(process)
                time.sleep(0.02)
            if process.running:
                if say is not None:
                    say(f"{name} did not end within {timeout_s:.0f} s; killed")
                self.send(name, signal.SIGKILL)
                while process.running:
                    self._reap(process)
                    time.sleep(0.01)
            self._reap(process)

    def of_kind(self, kind: str) -> list[Process]:
        """The processes of one kind, in the order of their names."""
        return [process for _, process in sorted(self.all.items()) if process.kind == kind]

    def log_file(self, name: str) -> Path:
        """Where ``name`` writes."""
        return self.directory / "logs" / f"{name}.log"

    def last_words(self, name: str) -> str:
        """The last line of the log of ``name``."""
        try:
            lines = self.log_file(name).read_text(errors="replace").strip().splitlines()
        except FileNotFoundError:
            return "it wrote nothing"
        return lines[-1] if lines else "it wrote nothing"

    def _ready_file(self, name: str) -> Path:
        return self.directory / "ready" / f"{name}.json"

    def _reap(self, process: Process) -> None:
        child = self._children.get(process.pid)
        if child is not None:
            child.poll()


def _with_ports(arguments: list[str], ready: Mapping[str, Any]) -> list[str]:
    """The same command with the ports it was given, so that it listens there again when it is started again."""
    pinned = list(arguments)
    for place, argument in enumerate(arguments):
        if argument == "0" and arguments[place - 1] == "--port" and ready.get("port"):
            pinned[place] = str(ready["port"])
        for setting, which in (("modern.port", "modern_port"), ("admin.port", "admin_port")):
            if argument == f"{setting}=0" and ready.get(which):
                pinned[place] = f"{setting}={ready[which]}"
    return pinned


def write_ready(path: str | None, facts: Mapping[str, Any]) -> None:
    """What a process calls when it can be used: write its ready-file whole."""
    if path is None:
        return
    temporary = Path(f"{path}.new")
    temporary.write_text(json.dumps(dict(facts)))
    os.replace(temporary, path)
