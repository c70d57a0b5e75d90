"""The public test kit: a real broker as a real process, for your tests as for ours.

    with BrokerProcess(options={"log.flush.interval": 1}) as broker:
        talk_to(broker.host, broker.port)
        broker.kill()       # SIGKILL, as a crash would
        broker.restart()    # same directory, same port

The process takes a free port, dies with its parent, and its output is shown if it does not start. Leaving the ``with``
block stops the broker and fails with UnhandledErrors if its output tells of an error nobody handled: a broker that
only looks well is not well. A test that causes one on purpose says so with ``expected_errors``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from kafka2011.child import die_with_parent

START_PATIENCE_S = 60.0
"""Bounds a hang; a busy machine may need many seconds to start Python."""
STOP_PATIENCE_S = 2.0
"""For the stop at the end of a ``with`` block; what takes longer (a disk that was made to hang) is killed."""

_UNHANDLED = re.compile("Unhandled [Ee]rror|Traceback \\(most recent call last\\)|handler_failed")
_ENTRY = re.compile(r"(?<!in Deferred:\n)^(?=\d{4}-\d\d-\d\d \d\d:)", re.MULTILINE)
"""Where an entry of the log begins; Twisted tells of an error in two, "Unhandled error in Deferred:" and its trace."""


class UnhandledErrors(AssertionError):
    """A broker met errors that nobody handled."""


def unhandled_errors(output: str, expected: Collection[str] = ()) -> list[str]:
    """The log entries of ``output`` that tell of an error nobody handled, but for those with an ``expected`` text."""
    entries = [entry for entry in _ENTRY.split(output) if _UNHANDLED.search(entry)]
    return [entry for entry in entries if not any(text in entry for text in expected)]


class BrokerProcess:
    """``kafka2011 broker start`` as a child process. Thread: one.

    ``options`` are settings by their 0.7 names. Without ``log_dir`` a temporary directory is made and removed.
    ``environ`` is added to the environment (failpoints, for example). ``expected_errors`` are texts of errors that this
    broker may leave unhandled. The process lives no longer than the thread that
    started it: that is how the kernel lets a child die with its parent.
    """

    def __init__(
        self,
        log_dir: Path | str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        expected_errors: Collection[str] = (),
    ) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="kafka2011-broker-")
        self.log_dir = Path(self._files.name) / "data" if log_dir is None else Path(log_dir)
        self.options: dict[str, object] = {"port": 0, "admin.port": 0} | dict(options or {})
        self.environ = dict(environ or {})
        self.expected_errors = expected_errors
        self.process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = 0
        self.admin_port: int | None = None
        self.modern_port: int | None = None

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self.process is None:
            raise RuntimeError("the broker was not started")
        return self.process.pid

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def output(self) -> str:
        """What the broker printed so far, over all its starts."""
        path = self._output_path()
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> BrokerProcess:
        """Start the process and wait until it listens; raise with its output if it ends before."""
        deadline = time.monotonic() + START_PATIENCE_S
        while not self._try_to_start(deadline):
            # Between a kill and a restart somebody's outgoing connection may have been given our port for a while.
            if time.monotonic() > deadline or "cannot listen" not in self.output.rpartition("\nkafka2011: ")[2]:
                raise RuntimeError(f"the broker ended with code {self.process and self.process.poll()}:\n{self.output}")
            time.sleep(0.2)
        return self

    def _try_to_start(self, deadline: float) -> bool:
        ready = Path(self._files.name) / "ready.json"
        ready.unlink(missing_ok=True)
        command = ["kafka2011", "broker", "start"]
        command += ["--log-dir", str(self.log_dir), "--ready-file", str(ready)]
        for name, value in self.options.items():
            command += ["--set", f"{name}={_text(value)}"]
        self.process = self._spawn(command)
        while not ready.exists():
            if self.process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the broker did not listen within {START_PATIENCE_S:.0f} s:\n{self.output}")
            time.sleep(0.02)
        found = json.loads(ready.read_text())
        self.host, self.port = found["host"], found["port"]
        self.admin_port, self.modern_port = found["admin_port"], found["modern_port"]
        return True

    def _spawn(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        """Start ``kafka2011 broker start …``; what starts processes in its own way overrides this."""
        with open(self._output_path(), "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | self.environ,
                preexec_fn=die_with_parent,
            )

    def stop(self, timeout_s: float = 60.0) -> int:
        """SIGTERM and wait; return the exit code. A broker that does not end is killed and reported."""
        process = self.process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the broker did not stop within {timeout_s:.0f} s:\n{self.output}") from None

    def kill(self) -> None:
        """SIGKILL, as a crash would, and wait until it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: the broker is there and says nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after ``pause``."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> BrokerProcess:
        """Start again on the same directory and port, after ``stop`` or ``kill`` (or stop it first)."""
        self.stop()
        self.options["port"] = self.port
        if self.modern_port is not None:
            self.options["modern.port"] = self.modern_port
        return self.start()

    def state(self) -> dict[str, Any]:
        """The broker's ``/state``."""
        found: dict[str, Any] = json.loads(self.http("/state"))
        return found

    def http(self, path: str) -> str:
        """GET a page of the broker's admin HTTP."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=60) as reply:
            body: bytes = reply.read()
        return body.decode()

    def __enter__(self) -> BrokerProcess:
        return self if self.process is not None and self.process.poll() is None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._end()
                self.check()
        finally:
            self.kill()
            self._files.cleanup()

    def check(self) -> None:
        """Raise UnhandledErrors if the broker has told of any so far."""
        found = unhandled_errors(self.output, self.expected_errors)
        if found:
            raise UnhandledErrors(f"the broker met {len(found)} errors that nobody handled:\n" + "\n".join(found))

    def _end(self) -> None:
        """Stop in order, if that is quick: an error that only the garbage collector finds is told at the end."""
        if self.process is None or self.process.poll() is not None:
            return
        self.resume()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass  # killed by the caller

    def _output_path(self) -> Path:
        return Path(self._files.name) / "output.txt"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{topic}:{number}" for topic, number in value.items())
    return str(value)
