"""Look at the cluster once a second and make a frame of it.

Reads only: ZooKeeper's tree, each broker's ``/state``, the journals the processes of a cluster directory write, the
load's reports. A part that does not answer is shown as gone; the look goes on.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from consumers.observatory.frames import Frame
from consumers.observatory.journals import Journals
from consumers.observatory.registry_tree import Tree, read_tree
from kafka2011.clock import SYSTEM_CLOCK, Clock
from zk_registry.operations import RegistryError
from zk_registry.session import ZooKeeperSession


class Collector:
    """Make frames in a thread of its own and hand each to ``deliver``. Thread: any."""

    def __init__(
        self,
        session: ZooKeeperSession,
        deliver: Callable[[Frame], None],
        *,
        cluster_dir: Path | None = None,
        reports: Path | None = None,
        every_s: float = 1.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._session, self._deliver, self._every_s, self._clock = session, deliver, every_s, clock
        self._cluster_dir, self._reports = cluster_dir, reports
        self._journals = Journals(cluster_dir / "journal") if cluster_dir else None
        self._known: dict[str, dict[str, Any]] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._tree = Tree()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observatory-collector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="observatory-ask") as pool:
            while not self._over.is_set():
                began = self._clock.monotonic()
                frame = self.look(pool)
                if not self._over.is_set():
                    self._deliver(frame)
                # A look that took long (a thousand partitions) is followed by an equally long rest, so that
                # watching never costs a broker more than a small share of its time.
                took = self._clock.monotonic() - began
                self._over.wait(max(self._every_s - took, took, 0.05))

    def look(self, pool: ThreadPoolExecutor) -> Frame:
        """One frame of the cluster as it is now."""
        try:
            self._tree = read_tree(self._session)
        except RegistryError:
            # ZooKeeper is away: the brokers are still there (§3.2), so show them with the tree last seen.
            pass
        self._remember_brokers()
        for number, state in pool.map(self._ask, list(self._known.items())):
            if state is not None:
                self._states[number] = state
        return {
            "t": self._clock.wall_ms(),
            "brokers": {number: self._broker(number) for number in self._known},
            "topics": self._topics(),
            "groups": self._tree.groups | self._modern_groups(),
            "tree": self._tree.nodes,
            "events": self._journals.read() if self._journals else [],
            "loads": _loads(self._reports) if self._reports else [],
        }

    def _remember_brokers(self) -> None:
        for number, known in self._known.items():
            known["alive"] = number in self._tree.brokers
        for number, (host, port) in self._tree.brokers.items():
            self._known[number] = {"host": host, "port": port, "alive": True}
        for number, address in self._admin_addresses().items():
            if number in self._known:
                self._known[number]["admin"] = address

    def _admin_addresses(self) -> dict[str, str]:
        """Where each broker answers questions: published in ZooKeeper, or in the cluster's process list."""
        found = dict(self._tree.admin)
        if self._cluster_dir is not None and (path := self._cluster_dir / "cluster.json").exists():
            for process in json.loads(path.read_text())["processes"].values():
                if process["kind"] == "broker" and process["ready"].get("admin_port"):
                    address = f"{process['ready'].get('host', '127.0.0.1')}:{process['ready']['admin_port']}"
                    found[process["name"].rpartition("-")[2]] = address
        return found

    def _ask(self, broker: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any] | None]:
        number, known = broker
        if "admin" not in known:
            return number, None
        try:
            with urllib.request.urlopen(f"http://{known['admin']}/state", timeout=3) as answer:
                return number, json.load(answer)
        except (OSError, ValueError, urllib.error.URLError):
            return number, None

    def _broker(self, number: str) -> dict[str, Any]:
        state = self._states.get(number, {})
        counters = state.get("counters", {})
        return {
            "host": self._known[number]["host"],
            "port": self._known[number]["port"],
            "alive": self._known[number]["alive"],
            "connections": state.get("connections"),
            "counters": {
                "bytes_in": counters.get("appended_bytes", 0),
                "bytes_out": sum(counters.get("fetched_bytes", {}).values()),
                "messages_in": counters.get("appended_messages", 0),
            },
        }

    def _topics(self) -> dict[str, dict[str, Any]]:
        topics: dict[str, dict[str, Any]] = {}
        for number, state in self._states.items():
            for topic, known in state.get("topics", {}).items():
                if topic.startswith("__"):
                    continue
                for partition, log in known["partitions"].items():
                    topics.setdefault(topic, {})[f"{number}-{partition}"] = {
                        "first": log["first_offset"],
                        "flushed": log["flushed_offset"],
                        "end": log["end_offset"],
                        "size": log["size"],
                        "segments": [[s["start"], s["size"], s["flushed_size"]] for s in log["segments"]],
                    }
        return topics

    def _modern_groups(self) -> dict[str, dict[str, Any]]:
        groups: dict[str, dict[str, Any]] = {}
        for state in self._states.values():
            found = state.get("plugins", {}).get("modern", {}).get("groups", {})
            groups |= {name: {"kind": "modern"} | known for name, known in found.items()}
        return groups


def _loads(directory: Path) -> list[dict[str, Any]]:
    """The newest reports of the load, newest first; a half-written one is passed over."""
    found = []
    for path in sorted(directory.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)[:12]:
        try:
            found.append(json.loads(path.read_text()))
        except ValueError:
            continue
    return found
