"""What a warehouse remembers of its loads, beside the tables: plans, reports and the lock, under ``_etl/``.

None of it is the truth about data or offsets; that is in the tables' own logs. It is here to say what happened.

    nothing     no load was ever planned, or the last one published no topic
    half done   the last load published some of its topics; run again to finish
    committed   the last load published everything it planned
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hadoop_etl.errors import LoadLocked
from hadoop_etl.plan import Plan, read_plan
from hadoop_etl.storage import local_path, names, read_text, write_text
from hadoop_etl.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Status:
    """How the last load ended."""

    state: str
    load: str | None
    published: tuple[str, ...]
    unpublished: tuple[str, ...]
    running: str | None
    """Who holds the lock now, if anyone."""


def plan_uri(warehouse: Warehouse, load: str) -> str:
    """Where the plan of a load is kept."""
    return f"{warehouse.root}/_etl/plans/{load}.json"


def report_uri(warehouse: Warehouse, load: str, ending: str) -> str:
    """Where the report of a load is kept."""
    return f"{warehouse.root}/_etl/reports/{load}.{ending}"


def save_plan(warehouse: Warehouse, plan: Plan) -> str:
    """Keep a plan; returns where."""
    uri = plan_uri(warehouse, plan.load)
    write_text(uri, plan.to_json())
    return uri


def last_plan(warehouse: Warehouse) -> Plan | None:
    """The newest plan that was begun."""
    found = [name for name in names(f"{warehouse.root}/_etl/plans") if name.endswith(".json")]
    if not found:
        return None
    uri = f"{warehouse.root}/_etl/plans/{found[-1]}"
    return read_plan(read_text(uri), uri)


def last_report(warehouse: Warehouse) -> str | None:
    """The name of the newest load that has a report."""
    found = [name for name in names(f"{warehouse.root}/_etl/reports") if name.endswith(".json")]
    return found[-1].removesuffix(".json") if found else None


def status(warehouse: Warehouse) -> Status:
    """Say whether the last load is committed, half done or nothing."""
    plan, holder = last_plan(warehouse), lock_holder(warehouse)
    if plan is None:
        return Status("nothing", None, (), (), holder)
    wanted = [t.topic for t in plan.topics if any(part.is_news for part in t.ranges)]
    done = [topic for topic in wanted if warehouse.table(topic).published(plan.load) is not None]
    open_ = tuple(topic for topic in wanted if topic not in done)
    state = "committed" if not open_ else "half done" if done else "nothing"
    return Status(state, plan.load, tuple(done), open_, holder)


@contextmanager
def locked(warehouse: Warehouse, what: str) -> Iterator[None]:
    """Hold the warehouse's lock: two nights never overlap. The kernel lets go of it if we die.

    Only where the warehouse is on this machine's file system; elsewhere the commit's own check still keeps two loads
    from publishing the same offsets, it is merely noticed later.
    """
    root = local_path(warehouse.root)
    if root is None:
        yield
        return
    path = root / "_etl" / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise LoadLocked(
                f"{warehouse.root} is in use by {_holder(file.read())}; wait until it ends, or look with 'etl status'"
            ) from None
        file.seek(0)
        file.truncate()
        json.dump({"pid": os.getpid(), "what": what}, file)
        file.flush()
        yield


def lock_holder(warehouse: Warehouse) -> str | None:
    """Who holds the lock, or None."""
    root = local_path(warehouse.root)
    path = root / "_etl" / "lock" if root is not None else None
    if path is None or not path.exists():
        return None
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder(file.read())
    return None


def _holder(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return "another process"
    return f"process {found['pid']} ({found['what']})"
