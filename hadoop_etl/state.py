"""What a warehouse remembers of its loads, beside the tables: one file per load, under ``_etl/loads``.

It holds the plan when the load begins, and plan and report when it ends; those older than some days are removed. None
of it is the truth about data or offsets; that is in the tables' own logs. It is here to say what happened.

    nothing     no load was ever planned, or the last one published no topic
    half done   the last load published some of its topics; run again to finish
    committed   the last load published everything it planned
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hadoop_etl.columns import DAY_MS
from hadoop_etl.lock import lock_holder
from hadoop_etl.plan import Plan, load_time, read_plan
from hadoop_etl.storage import names, read_text, remove, write_text
from hadoop_etl.warehouse import Warehouse

KEEP_DAYS = 90
_PLACES = ("loads", "plans", "reports")
"""Where loads are remembered; the last two by an older edition."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the last load ended."""

    state: str
    load: str | None
    published: tuple[str, ...]
    unpublished: tuple[str, ...]
    running: str | None
    """Who holds the lock now, if anyone."""
    unsettled: tuple[str, ...] = ()
    """Topics whose quarantine lacks rows that their table's commits decided, for readers other than ours."""


def load_uri(warehouse: Warehouse, load: str) -> str:
    """Where a load is remembered."""
    return f"{warehouse.root}/_etl/loads/{load}.json"


def save_plan(warehouse: Warehouse, plan: Plan) -> str:
    """Remember that a load begins; returns where."""
    uri = load_uri(warehouse, plan.load)
    write_text(uri, json.dumps({"load": plan.load, "plan": plan.as_dict()}, indent=1))
    return uri


def save_report(warehouse: Warehouse, report: dict[str, Any], plan: Plan, keep_days: int = KEEP_DAYS) -> str:
    """Remember how a load ended, and forget those that ended long ago; returns where."""
    uri = load_uri(warehouse, plan.load)
    # A load that could not be planned has nothing to be finished: it does not count as the last plan.
    planned = {"plan": plan.as_dict()} if plan.topics else {}
    write_text(uri, json.dumps({**report, **planned}, indent=1))
    oldest = load_time(plan.created_ms - keep_days * DAY_MS)
    for place in _PLACES:
        for name in names(f"{warehouse.root}/_etl/{place}"):
            # Names of loads begin with their time, so that they sort by it.
            if name[: len(oldest)] < oldest and name[0].isdecimal():
                remove(f"{warehouse.root}/_etl/{place}/{name}")
    return uri


def last_plan(warehouse: Warehouse) -> Plan | None:
    """The newest plan that was begun."""
    found = next((record for record in _records(warehouse) if "plan" in record), None)
    return None if found is None else read_plan(json.dumps(found["plan"]), load_uri(warehouse, found["load"]))


def read_report(warehouse: Warehouse, load: str | None = None) -> dict[str, Any] | None:
    """The report of a load, by default of the last one that has ended; None if there is none."""
    if load is None:
        found = next((record for record in _records(warehouse) if "state" in record), None)
    else:
        try:
            found = json.loads(read_text(load_uri(warehouse, load)))
        except FileNotFoundError:
            return None
    return found if found is not None and "state" in found else None


def _records(warehouse: Warehouse) -> Iterator[dict[str, Any]]:
    """What is remembered, newest first."""
    for name in reversed(names(f"{warehouse.root}/_etl/loads")):
        if name.endswith(".json") and not name.startswith("."):
            yield json.loads(read_text(f"{warehouse.root}/_etl/loads/{name}"))


def status(warehouse: Warehouse) -> Status:
    """Say whether the last load is committed, half done or nothing."""
    plan, holder = last_plan(warehouse), lock_holder(warehouse)
    unsettled = tuple(topic for topic in warehouse.topics() if not warehouse.table(topic).is_settled())
    if plan is None:
        return Status("nothing", None, (), (), holder, unsettled)
    since = {t.topic: t.version for t in plan.topics if any(part.is_news for part in t.ranges)}
    wanted = list(since)
    done = [topic for topic in wanted if warehouse.table(topic).published(plan.load, since[topic]) is not None]
    open_ = tuple(topic for topic in wanted if topic not in done)
    state = "committed" if not open_ else "half done" if done else "nothing"
    return Status(state, plan.load, tuple(done), open_, holder, unsettled)
