"""What a warehouse remembers of its loads, beside the tables: plans and reports, under ``_etl/``.

None of it is the truth about data or offsets; that is in the tables' own logs. It is here to say what happened.

    nothing     no load was ever planned, or the last one published no topic
    half done   the last load published some of its topics; run again to finish
    committed   the last load published everything it planned
"""

from __future__ import annotations

from dataclasses import dataclass

from hadoop_etl.lock import lock_holder
from hadoop_etl.plan import Plan, read_plan
from hadoop_etl.storage import names, read_text, write_text
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
    since = {t.topic: t.version for t in plan.topics if any(part.is_news for part in t.ranges)}
    wanted = list(since)
    done = [topic for topic in wanted if warehouse.table(topic).published(plan.load, since[topic]) is not None]
    open_ = tuple(topic for topic in wanted if topic not in done)
    state = "committed" if not open_ else "half done" if done else "nothing"
    return Status(state, plan.load, tuple(done), open_, holder)
