"""The demo's nights: the real load, as the command a scheduler would run, every few minutes.

Paper: §4, the offline half.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from classroom.cluster.cluster import Cluster
from classroom.demo.events import SCHEMAS
from classroom.demo.summary import Loaded
from hadoop_etl.audit import audit, exit_code
from hadoop_etl.reading import events
from hadoop_etl.warehouse import Warehouse
from kafka2011.child import die_with_parent
from kafka2011.clock import SYSTEM_CLOCK

LAST_NIGHT_S = 300.0


class Night:
    """At most one load at a time, in a process of its own. Thread: one."""

    def __init__(self, directory: Path, cluster: Cluster, master: str, say: Callable[[str], None]) -> None:
        self._warehouse, self._log = directory / "warehouse", directory / "logs" / "load.log"
        self._schemas, self._cluster, self._master, self._say = directory / "schemas", cluster, master, say
        self._process: subprocess.Popen[bytes] | None = None
        self._nights = 0

    def start(self) -> None:
        """Begin a load, unless one is still running."""
        if self._process is not None:
            return
        self._nights += 1
        self._say(f"night {self._nights}: loading what is new into {self._warehouse} (master {self._master})")
        command = [sys.executable, "-m", "kafka2011", "etl", "run", "-z", self._cluster.zookeeper]
        command += ["-w", str(self._warehouse), "--master", self._master]
        command += ["--schemas", str(self._schemas), "-t", "audit:json"]
        for topic in SCHEMAS:
            command += ["-t", f"{topic}:avro"]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def look(self) -> None:
        """Say how the load ended, once it has."""
        if self._process is None or self._process.poll() is None:
            return
        code, self._process = self._process.returncode, None
        # 3 = could not tell: the newest windows are still open while producers send.
        words = {0: "committed, the audit adds up", 3: "committed; the newest audit windows are still open"}
        how = words.get(code, f"exit code {code}, see {self._log}")
        self._say(f"night {self._nights}: {how}; rows: {self._rows():,}")

    def finish(self) -> Loaded:
        """Load the rest, now that nothing is sent any more, and let the audit judge."""
        self._wait()
        self.start()
        self._wait()
        windows = audit(Warehouse(str(self._warehouse)), now_ms=SYSTEM_CLOCK.wall_ms())
        wrong = [window for window in windows if window.verdict != "complete"]
        if exit_code(windows) == 0 and windows:
            return Loaded(self._rows(), "complete")
        first = f"{wrong[0].topic} from {wrong[0].start_ms} {wrong[0].verdict}" if wrong else "no window was audited"
        return Loaded(self._rows(), f"{len(wrong)} of {len(windows)} windows do not add up: {first}")

    def abandon(self) -> None:
        """End a load that still runs: nothing of it is published, as after any crash."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _wait(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(LAST_NIGHT_S)
            except subprocess.TimeoutExpired:
                self._say(f"night {self._nights}: not done after {LAST_NIGHT_S:.0f} s; given up")
                self.abandon()
            self.look()

    def _rows(self) -> int:
        warehouse = Warehouse(str(self._warehouse))
        tables = [warehouse.table(topic) for topic in SCHEMAS]
        return sum(events(table).count_rows() for table in tables if table.exists())
