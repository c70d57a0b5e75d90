"""What a warehouse remembers of its loads: one file each, for some days (issue 21, point 14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hadoop_etl.columns import DAY_MS
from hadoop_etl.decode import Format
from hadoop_etl.plan import Plan, TopicPlan, new_load
from hadoop_etl.state import last_plan, read_report, save_plan, save_report, status
from hadoop_etl.warehouse import Warehouse

NOW_MS = 1_307_847_600_000


def plan(warehouse: Warehouse, created_ms: int, topics: bool = True) -> Plan:
    planned = (TopicPlan("clicks", Format(), False, ()),) if topics else ()
    return Plan(new_load(created_ms), created_ms, warehouse.root, planned)


def report(made: Plan, state: str = "committed") -> dict[str, Any]:
    return {"load": made.load, "state": state}


def remembered(warehouse: Warehouse) -> list[str]:
    return sorted(path.name for path in Path(warehouse.root, "_etl").rglob("*") if path.is_file())


def test_one_file_per_load_and_none_after_its_days(tmp_path: Path) -> None:
    """A load a day for a hundred days: thirty files, the newest; those of an older edition go too."""
    warehouse = Warehouse(str(tmp_path))
    for place in ("plans", "reports"):
        (tmp_path / "_etl" / place).mkdir(parents=True)
        (tmp_path / "_etl" / place / f"{new_load(NOW_MS - DAY_MS)}.json").write_text("{}")
    loads = []
    for day in range(100):
        made = plan(warehouse, NOW_MS + day * DAY_MS)
        save_plan(warehouse, made)
        save_report(warehouse, report(made), made, keep_days=30)
        loads.append(f"{made.load}.json")
    assert remembered(warehouse) == loads[-31:]


def test_the_last_plan_and_the_last_report_are_found(tmp_path: Path) -> None:
    """A load that died has a plan and no report; one that could not be planned has a report and no plan."""
    warehouse = Warehouse(str(tmp_path))
    assert (last_plan(warehouse), read_report(warehouse)) == (None, None)
    ended, died, unplanned = (plan(warehouse, NOW_MS + i, topics=i < 2) for i in range(3))
    save_plan(warehouse, ended)
    save_report(warehouse, report(ended), ended)
    save_plan(warehouse, died)
    assert read_report(warehouse, died.load) is None
    assert (read_report(warehouse) or {})["load"] == ended.load
    save_report(warehouse, report(unplanned, "failed"), unplanned)
    assert (read_report(warehouse) or {})["load"] == unplanned.load
    assert last_plan(warehouse) == died
    assert status(warehouse).load == died.load
