"""Start many brokers and consumers quickly: one process imports everything once and forks for each.

A broker spends most of its start on importing Python modules; on a busy machine fifty starts would take longer than all
experiments. What is forked is an ordinary process with its own memory, threads and sockets.

The nursery reads a line of JSON for each wish and answers with a process id. It ends with its parent, and its children
end with it.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from kafka2011.child import die_with_parent

_PRELOADED = (
    "kafka2011.cli.main",
    "kafka2011.cli.broker",
    "kafka2011.broker.service",
    "twisted.internet.epollreactor",
    "classroom.claims.harness.alterations",
    "classroom.claims.harness.member",
)


class Forked:
    """A process of the nursery, with the methods of a Popen that a test kit needs. Thread: any."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._fd = -1

    def poll(self) -> int | None:
        """None while it runs; what it ended with is not known."""
        return None if self._running(0) else -1

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        if self._running(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return -1

    def send_signal(self, number: int) -> None:
        """As ``kill(2)``; nothing if it is gone."""
        if self._running(0):
            signal.pidfd_send_signal(self._fd, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _running(self, timeout: float | None) -> bool:
        if self._fd < 0:
            return False
        watch = select.poll()
        watch.register(self._fd, select.POLLIN)
        if not watch.poll(None if timeout is None else 1000 * timeout):
            return True
        os.close(self._fd)
        self._fd = -1
        return False


class Nursery:
    """The parent's side. Thread: the one that made it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "classroom.claims.harness.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )

    def start(
        self,
        target: str,
        argv: Sequence[str],
        output: Path,
        *,
        environ: Mapping[str, str] | None = None,
        alterations: Sequence[str] = (),
    ) -> Forked:
        """Fork a process that runs ``module:function`` with ``argv``; its output is appended to a file."""
        wish = {
            "target": target,
            "argv": list(argv),
            "output": str(output),
            "environ": dict(environ or {}),
            "alterations": list(alterations),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the nursery of the claims' processes has ended")
        return Forked(int(answer))

    def close(self) -> None:
        """End the nursery and all its children."""
        self._process.kill()
        self._process.wait()


def _serve() -> None:
    for module in _PRELOADED:
        importlib.import_module(module)
    for plugin in entry_points(group="kafka2011.broker_plugins"):
        plugin.load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that end are not waited for
    for line in sys.stdin:
        wish = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _be(wish)
        print(pid, flush=True)


def _be(wish: dict[str, Any]) -> None:
    """Become the process that was wished for. Never returns."""
    code = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output = os.open(wish["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(wish["environ"])
        sys.argv = wish["argv"]
        for name in wish["alterations"]:
            importlib.import_module("classroom.claims.harness.alterations").apply(name)
        importlib.import_module("kafka2011.failpoints").load()
        module, _, function = wish["target"].partition(":")
        getattr(importlib.import_module(module), function)()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait_for(condition: Any, what: str, timeout_s: float = 60.0) -> Any:
    """Wait until ``condition()`` is true and return it; a timeout names what was waited for."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(0.01)
    return found


if __name__ == "__main__":
    _serve()
