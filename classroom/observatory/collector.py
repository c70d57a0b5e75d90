"""Look at the cluster once a second and make a frame of it.

Reads only: ZooKeeper's tree, each broker's ``/state`` and ``/events``, the journals the processes of a cluster
directory write, the load's reports. A part that does not answer is shown as gone; the look goes on.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from classroom.observatory.broker_states import broker_view, modern_groups, readable_ends, topics_view
from classroom.observatory.frames import Frame
from classroom.observatory.journals import MOST_PER_LOOK, Journals
from classroom.observatory.loads import Loads
from classroom.observatory.readers import Readers
from classroom.observatory.registry_tree import Tree, changes, read_tree, shared
from kafka2011.clock import SYSTEM_CLOCK, Clock
from zk_registry.operations import RegistryError
from zk_registry.session import ZooKeeperSession

MOST_ANSWERED = 64 << 20
"""Bytes of a broker's answer: with ten thousand topics it has a few megabytes."""
NOT_A_BROKER = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading something as a broker's answer can raise, when it is not one."""


class Collector:
    """Make frames in a thread of its own and hand each to ``deliver``. Thread: any."""

    def __init__(
        self,
        session: ZooKeeperSession,
        deliver: Callable[[Frame], None],
        *,
        wanted: Callable[[], Set[str]] = frozenset,
        cluster_dir: Path | None = None,
        reports: Path | None = None,
        every_s: float = 1.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._session, self._deliver, self._every_s, self._clock = session, deliver, every_s, clock
        self._wanted, self._cluster_dir = wanted, cluster_dir
        self._journals = Journals(cluster_dir / "journal" if cluster_dir else None)
        self._readers = Readers(cluster_dir)
        self._loads = Loads(reports) if reports else None
        self._known: dict[str, dict[str, Any]] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._last_event: dict[str, int] = {}
        self._tree = Tree()
        self._frame: Frame = {}
        self._topics: dict[str, dict[str, Any]] = {}
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
                try:
                    frame = self._frame = self.look(pool)
                except Exception as error:  # whatever was found there, the page says so and looks again
                    frame = self._not_seen(error)
                if frame and not self._over.is_set():
                    self._deliver(frame)
                # A look that took long (a thousand partitions) is followed by an equally long rest, so that
                # watching never costs a broker more than a small share of its time.
                took = self._clock.monotonic() - began
                self._over.wait(max(self._every_s - took, took, 0.05))

    def _not_seen(self, error: Exception) -> Frame:
        """The frame before, with what went wrong; empty if there is none."""
        now = self._clock.wall_ms()
        text = f"this look failed: {type(error).__name__}: {error}"[:300]
        event = {"t": now, "source": "observatory", "event": "look_failed", "text": text}
        return self._frame | {"t": now, "changes": [], "events": [event]} if self._frame else {}

    def look(self, pool: ThreadPoolExecutor) -> Frame:
        """One frame of the cluster as it is now."""
        now = self._clock.wall_ms()
        changed = self._look_at_zookeeper()
        self._journals.registry_changed(now, changed)
        self._remember_brokers()
        events = self._journals.read()
        for number, state, told in pool.map(self._ask, list(self._known.items())):
            if state is not None:
                self._states[number] = state
            events += self._told_by_broker(number, told)
        self._topics = topics_view(self._states, self._topics)
        alive = {number for number, known in self._known.items() if known["alive"]}
        groups = self._tree.groups | modern_groups(self._states, alive)
        members = {m for group in groups.values() for m in group["members"]}
        names = {m: name for m, name in self._journals.names.items() if m in members}
        return {
            "t": now,
            "brokers": {number: broker_view(known, self._states.get(number)) for number, known in self._known.items()},
            "topics": self._topics,
            "groups": groups,
            "tree": self._tree.nodes,
            "changes": changed,
            "names": names,
            "not_reading": self._readers.not_reading(now, groups, readable_ends(self._topics, alive), names),
            "events": sorted(events, key=lambda event: int(event["t"]))[-MOST_PER_LOOK:],
            "loads": self._loads.read() if self._loads else [],
        }

    def _look_at_zookeeper(self) -> list[list[Any]]:
        before = self._tree
        try:
            self._tree = shared(before, read_tree(self._session, self._wanted()))
        except RegistryError:
            # ZooKeeper is away: the brokers are still there (§3.2), so show them with the tree last seen.
            return []
        return changes(before, self._tree) if before.nodes else []

    def _remember_brokers(self) -> None:
        for number, known in self._known.items():
            known["alive"] = number in self._tree.brokers
        for number, (host, port) in self._tree.brokers.items():
            self._known.setdefault(number, {}).update(host=host, port=port, alive=True)
        for number, address in self._tree.admin.items():
            if number in self._known:
                self._known[number]["admin"] = address

    def _ask(self, broker: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any] | None, list[dict[str, Any]]]:
        """One broker's state and its events since the last look; nothing if it does not answer."""
        number, known = broker
        if not known["alive"] or "admin" not in known:
            return number, None, []
        try:
            # Anybody who can write to ZooKeeper can name an address, and anything may answer there.
            with closing(http.client.HTTPConnection(known["admin"], timeout=3)) as link:
                state = _get(link, "/state")
                if str(state.get("broker_id")) != number:
                    return number, None, []  # an address of another machine, where someone else answers
                if state.get("started_ms") != self._states.get(number, {}).get("started_ms"):
                    self._last_event[number] = 0
                told = _get(link, f"/events?once=1&since={self._last_event.get(number, 0)}")
                return number, _shaped(known, number, state), [_numbered(entry) for entry in told]
        except (OSError, http.client.HTTPException, *NOT_A_BROKER):
            return number, None, []

    def _told_by_broker(self, number: str, told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        entries = list(told)
        if entries:
            self._last_event[number] = max(entry["n"] for entry in entries)
        return self._journals.shown(f"broker-{number}", entries)


def _get(link: http.client.HTTPConnection, path: str) -> Any:
    link.request("GET", path)
    text = link.getresponse().read(MOST_ANSWERED + 1)
    if len(text) > MOST_ANSWERED:
        raise ValueError(f"more than {MOST_ANSWERED} bytes")
    return json.loads(text)


def _shaped(known: dict[str, Any], number: str, state: dict[str, Any]) -> dict[str, Any]:
    """The state, if a frame can be made of it; what is not a broker's raises one of NOT_A_BROKER."""
    broker_view(known, state)
    topics_view({number: state}, {})
    modern_groups({number: state}, {number})
    return state


def _numbered(entry: dict[str, Any]) -> dict[str, Any]:
    if not (isinstance(entry["n"], int) and isinstance(entry["t"], int) and isinstance(entry["event"], str)):
        raise ValueError("not an event")
    return entry
