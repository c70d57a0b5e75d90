"""Start programs of our own and be sure they end with us.

ZooKeeper, brokers and consumers run as processes in the demo, the cluster command and the tests. A child that
outlives a killed parent would hold ports and data directories, so it asks the kernel for a signal at that moment.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent thread ends. For ``Popen(preexec_fn=…)``, Linux only."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start_time(pid: int) -> int | None:
    """When ``pid`` started, in kernel ticks; None if there is no such process, or only a zombie is left of it.

    Pid and start time together name a process for good: a pid alone may be somebody else's tomorrow.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int, started: int | None = None) -> bool:
    """Tell whether ``pid`` runs, and is still the process that started at ``started``."""
    now = start_time(pid)
    return now is not None and (started is None or now == started)


def signal_process(pid: int, started: int | None, number: int) -> bool:
    """Send a signal to exactly that process; False if it is gone."""
    if not is_alive(pid, started):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
