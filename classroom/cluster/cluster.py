"""A ZooKeeper-backed cluster on this machine: bring it up, heal it, tell its state, take it down.

``up`` is idempotent: it starts what does not run and leaves the rest alone. So the answer to any kill -9 is ``up``
again. A process takes its usual port; if another program has that, the port it had before, or any free one.

Paper: §3.2 (the registries a broker joins), §5 (brokers as separate machines; here, processes).
"""

from __future__ import annotations

import signal
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classroom.cluster.processes import ClusterError, Process, Processes
from zk_registry.server import free_ports

USUAL_PORTS = {"zookeeper": 2181, "broker": 9092, "modern": 9192, "admin": 9292, "observatory": 8011}
_FROM_BASE = {"zookeeper": 0, "observatory": 5, "broker": 10, "modern": 40, "admin": 70}
PORTS_FROM_BASE = 100
"""How many ports in a row a cluster with a port base may take."""
_MEMBERS = "abc"
_ANSWER_S = 15.0
"""How long a ZooKeeper that was running already may take to say a word."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a cluster: many more partitions than consumers, as §3.2 advises."""

    zookeepers: int = 1
    brokers: int = 3
    partitions: int = 4
    standbys: int = 0
    """Further members of each broker (docs/since-2011.md)."""


class Cluster:
    """The processes of a cluster and how to start each. Thread: one."""

    def __init__(
        self,
        directory: Path,
        size: Size | None = None,
        *,
        settings: tuple[str, ...] = (),
        with_parent: bool = False,
        any_ports: bool = False,
        port_base: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.processes = Processes(directory, with_parent=with_parent)
        known = self.processes.facts.get("size")
        self.size = size or (Size(**known) if known else Size())
        self.settings = settings or tuple(self.processes.facts.get("settings", ()))
        self.processes.facts["size"] = {
            "zookeepers": self.size.zookeepers,
            "brokers": self.size.brokers,
            "partitions": self.size.partitions,
            "standbys": self.size.standbys,
        }
        self.processes.facts["settings"] = list(self.settings)
        self._ports = self.processes.facts.setdefault("ports", {"any": False, "base": None})
        if any_ports or port_base is not None:
            self._ports.update(any=any_ports, base=port_base)
        self._say = say

    @property
    def directory(self) -> Path:
        return self.processes.directory

    @property
    def zookeeper(self) -> str:
        """The connect string."""
        return str(self.processes.facts.get("zookeeper", ""))

    def up(self) -> None:
        """Start ZooKeeper, then the brokers, all that do not run; what is paused goes on."""
        self._resume()
        self._start_zookeeper()
        # Of each broker its member a first: the first that ever comes leads.
        for member in range(1 + self.size.standbys):
            self.processes.start_together([self._broker(number, member) for number in range(self.size.brokers)])
        for process in self.processes.of_kind("broker"):
            self._say(f"{process.name} listens on {process.ready['host']}:{process.ready['port']}")

    def _resume(self) -> None:
        for process in self.processes.all.values():
            if process.kind in USUAL_PORTS and process.running and process.paused:
                self.processes.send(process.name, signal.SIGCONT)
                self._say(f"{process.name} was paused; it goes on")

    def _start_zookeeper(self) -> None:
        name = "zookeeper"
        port = self.port(name, "port", "zookeeper")
        arguments = ["kafka2011", "zk", "start", "--port", str(port), "--servers", str(self.size.zookeepers)]
        arguments += ["--data-dir", str(self.directory / "zookeeper")]
        process = self.processes.start(Process(name, "zookeeper", arguments))
        self.processes.facts["zookeeper"] = process.ready["connect"]
        self.processes.save()
        deadline = time.monotonic() + _ANSWER_S
        while set((modes := _ask_zookeeper(self.zookeeper)).split(", ")) == {"silent"} and time.monotonic() < deadline:
            time.sleep(0.2)
        if set(modes.split(", ")) == {"silent"}:
            raise ClusterError(
                f"ZooKeeper runs (process {process.pid}) and does not answer at {self.zookeeper}; "
                f"`kafka2011 cluster kill {name}` ends it, `kafka2011 cluster up` starts another"
            )
        self._say(f"ZooKeeper answers at {self.zookeeper}")

    def _broker(self, number: int, member: int = 0) -> Process:
        name = f"broker-{number}-{_MEMBERS[member]}" if member else f"broker-{number}"
        place = number + member * self.size.brokers
        settings = {
            "zk.connect": self.zookeeper,
            "num.partitions": str(self.size.partitions),
            "modern.port": str(self.port(name, "modern_port", "modern", place)),
            "admin.port": str(self.port(name, "admin_port", "admin", place)),
        }
        arguments = ["kafka2011", "broker", "start", "--brokerid", str(number)]
        arguments += ["--log-dir", str(self.directory / name)]
        port = self.port(name, "port", "broker", place)
        if self.size.standbys:
            settings["standby.member"] = _MEMBERS[member]
            port = port or free_ports(1)[0]  # members find each other by a number that stays
        arguments += ["--port", str(port)]
        for key, value in settings.items():
            arguments += ["--set", f"{key}={value}"]
        for setting in self.settings:
            arguments += ["--set", setting]
        return Process(name, "broker", arguments)

    def port(self, name: str, which: str, kind: str, number: int = 0) -> int:
        """The usual port of the ``number``-th process of a kind, or the one ``name`` had before; 0 lets it choose."""
        known = self.processes.all.get(name)
        before = _port_before(known, which) if known is not None else 0
        if known is not None and known.running:
            return before
        usual = self._usual(kind, number)
        for wanted in filter(None, (usual, before)):
            if _is_free(wanted):
                break
        else:
            wanted = 0
        if usual and wanted != usual:
            instead = f"{wanted} as before" if wanted else "a free one"
            self._say(
                f"ATTENTION: another program listens on port {usual}; {name} ({kind}) takes {instead}. Programs that "
                f"name 127.0.0.1:{usual} reach the other one"
            )
        return wanted

    def _usual(self, kind: str, number: int) -> int:
        """The port a process of this cluster has when nobody is in the way; 0 if any will do."""
        if self._ports["any"]:
            return 0
        base = self._ports["base"]
        return number + (USUAL_PORTS[kind] if base is None else int(base) + _FROM_BASE[kind])

    def start(self, process: Process, *, timeout_s: float = 60.0) -> Process:
        """Start one more process beside ZooKeeper and the brokers (a consumer, the page, …)."""
        return self.processes.start(process, timeout_s=timeout_s)

    def down(self) -> None:
        """Stop everything, readers and writers first, ZooKeeper last."""
        order = ("activity", "consumer", "member", "observatory", "broker", "zookeeper")
        kinds = [*(p.kind for p in self.processes.all.values() if p.kind not in order), *order]
        for kind in dict.fromkeys(kinds):
            names = [process.name for process in self.processes.of_kind(kind) if process.running]
            if names:
                self.processes.stop(names, say=self._say)
                self._say(f"stopped {', '.join(names)}")

    def status(self) -> list[dict[str, Any]]:
        """One row per process: what the kernel and the process itself say now."""
        return [
            {
                "name": process.name,
                "state": self._state(process),
                "pid": process.pid if process.running else None,
                "address": _address(process),
                "says": self._says(process),
            }
            for process in self.processes.all.values()
        ]

    def _state(self, process: Process) -> str:
        if not process.running:
            return "dead"
        return "paused" if process.paused else "running"

    def _says(self, process: Process) -> str:
        if not process.running:
            return self.processes.last_words(process.name)
        if process.paused:
            return "nothing: it is paused"
        if process.kind == "zookeeper":
            return _ask_zookeeper(self.zookeeper)
        if process.kind == "broker" and process.ready.get("admin_port"):
            return _ask_broker(int(process.ready["admin_port"]))
        return "ready"


def _address(process: Process) -> str | None:
    if process.kind == "zookeeper":
        return str(process.ready.get("connect"))
    port = process.ready.get("port")
    return f"{process.ready.get('host', '127.0.0.1')}:{port}" if port else None


def _ask_zookeeper(connect: str) -> str:
    """The four-letter word ``srvr``: the one answer that means ZooKeeper serves."""
    modes = []
    for server in connect.partition("/")[0].split(","):
        host, _, port = server.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1) as link:
                link.sendall(b"srvr")
                answer = link.makefile("rb").read().decode(errors="replace")
        except OSError:
            answer = ""
        _, found, mode = answer.partition("Mode: ")
        modes.append(mode.split()[0] if found else "silent")
    return ", ".join(modes)


def _ask_broker(admin_port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/healthz", timeout=2) as answer:
            return str(answer.read(200).decode(errors="replace").strip().splitlines()[0])
    except (OSError, IndexError) as error:
        return f"does not answer ({error})"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _port_before(process: Process, which: str) -> int:
    if process.kind == "zookeeper":
        first = str(process.ready.get("connect", "")).partition("/")[0].partition(",")[0]
        return int(first.rpartition(":")[2] or 0)
    return int(process.ready.get(which) or 0)
