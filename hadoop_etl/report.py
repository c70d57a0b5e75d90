"""The report of a load: JSON for programs, one HTML page for the morning, a text file for the node exporter.

Paper: §4. Written before a failed load ends with its exit code, so that there is always something to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from hadoop_etl.audit import CANNOT_TELL, COMPLETE, Window
from hadoop_etl.audit import exit_code as audit_code
from hadoop_etl.columns import HOUR_MS
from hadoop_etl.job import Outcome, TopicOutcome

FAILED, COULD_NOT_TELL, HALF_DONE = 1, 3, 5

MOST_WINDOWS = 200
MOST_HOURS = 24 * 14


def as_dict(outcome: Outcome, windows: Sequence[Window], error: str | None = None) -> dict[str, Any]:
    """Everything that is known about a load, ready for JSON."""
    topics = [_topic(topic) for topic in outcome.topics]
    hours: Counter[int] = Counter()
    for topic in outcome.topics:
        hours.update(topic.hours)
    # Windows that do not add up first; of the rest only as many as a page holds.
    judged = sorted(windows, key=lambda w: (w.verdict == COMPLETE, w.verdict == CANNOT_TELL, w.topic, w.start_ms))
    partial = any(t["left"] or t["missing"] for t in topics)
    failed = [t for t in topics if t["error"]]
    state = "committed"
    if error or (failed and len(failed) == len(topics)):
        state = "failed"
    elif failed:
        state = "half done"
    elif partial:
        state = "partial"
    report = {
        "load": outcome.plan.load,
        "kind": outcome.plan.kind,
        "plan_hash": outcome.plan.hash,
        "warehouse": outcome.plan.warehouse,
        "created_ms": outcome.plan.created_ms,
        "state": state,
        "error": error,
        "seconds": round(outcome.seconds, 3),
        "failed_tasks": outcome.failed_tasks,
        "rows": sum(t["rows"] for t in topics),
        "dead": sum(t["dead"] for t in topics),
        "late": sum(t["late"] for t in topics),
        "bytes": sum(t["bytes"] for t in topics),
        "topics": topics,
        "rows_per_hour": {_time(hour * HOUR_MS): hours[hour] for hour in sorted(hours)[-MOST_HOURS:]},
        "audit": {
            "verdicts": dict(Counter(window.verdict.partition(" by ")[0] for window in windows)),
            "windows": [window.as_dict() for window in judged[:MOST_WINDOWS]],
            "windows_not_shown": max(len(windows) - MOST_WINDOWS, 0),
            "exit_code": audit_code(windows),
        },
    }
    report["exit_code"] = _exit_code(report)
    return report


def _exit_code(report: dict[str, Any]) -> int:
    """What the command ends with (``cli``): published either way, unless it is 1 or 5; then whether it adds up."""
    if report["state"] == "failed":
        return FAILED
    if report["state"] == "half done":
        return HALF_DONE
    # Without audit events nothing was claimed.
    if report["audit"]["verdicts"] and report["audit"]["exit_code"]:
        return int(report["audit"]["exit_code"])
    return COULD_NOT_TELL if any(topic["missing"] for topic in report["topics"]) else 0


def _topic(topic: TopicOutcome) -> dict[str, Any]:
    parts = [
        {"partition": str(part), "from": start, "to": end, "gap": topic.gaps.get(part)}
        for part, (start, end) in sorted(topic.loaded.items())
    ]
    return {
        "topic": topic.topic,
        "version": topic.version,
        "rows": topic.rows,
        "dead": topic.dead,
        "late": topic.late,
        "unknown_fields": topic.extra,
        "bytes": topic.bytes,
        "left": topic.left,
        "files": topic.files,
        "reasons": dict(topic.reasons.most_common(20)),
        "partitions": parts,
        "missing": [str(part) for part in topic.missing],
        "error": topic.error,
        "note": topic.note,
    }


def html(report: dict[str, Any]) -> str:
    """The report as one page without scripts or other files."""
    page = Environment(autoescape=True).from_string(files("hadoop_etl").joinpath("report.html").read_text())
    return page.render(r=report, bars=_bars(report["rows_per_hour"]), when=_time(report["created_ms"]), time=_time)


def _bars(rows: dict[str, int]) -> list[dict[str, Any]]:
    """The plot: one bar per hour, 100 units high."""
    most = max(rows.values(), default=1)
    step = 700 / max(len(rows), 1)
    width = round(max(step - 1, 0.5), 2)
    return [
        {"x": round(i * step, 2), "width": width, "height": round(100 * n / most, 2), "hour": hour, "rows": n}
        for i, (hour, n) in enumerate(rows.items())
    ]


def _time(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return str(time_ms)


def prometheus(report: dict[str, Any]) -> str:
    """The report as metrics, for the text-file collector of a node exporter."""
    lines: list[str] = []

    def metric(name: str, text: str, samples: Sequence[tuple[str, int | float]]) -> None:
        lines.append(f"# HELP kafka2011_etl_{name} {text}")
        lines.append(f"# TYPE kafka2011_etl_{name} gauge")
        lines.extend(f"kafka2011_etl_{name}{labels} {value}" for labels, value in samples)

    topics = [(f'{{topic="{t["topic"]}"}}', t) for t in report["topics"]]
    metric("last_load_timestamp_seconds", "When the last load was planned.", [("", report["created_ms"] // 1000)])
    metric("last_exit_code", "What the last load ended with: 0 done and it adds up.", [("", report["exit_code"])])
    metric("last_load_ok", "1 if every topic was published.", [("", int(report["state"] == "committed"))])
    metric("seconds", "How long the last load took.", [("", report["seconds"])])
    metric("failed_tasks", "Attempts of tasks that failed.", [("", report["failed_tasks"])])
    metric("rows", "Readable messages loaded.", [(label, t["rows"]) for label, t in topics])
    metric("dead_rows", "Messages that could not be read.", [(label, t["dead"]) for label, t in topics])
    metric("late_rows", "Events from before yesterday.", [(label, t["late"]) for label, t in topics])
    metric("bytes", "Bytes loaded.", [(label, t["bytes"]) for label, t in topics])
    metric("lag_bytes", "Bytes planned and not loaded.", [(label, t["left"]) for label, t in topics])
    verdicts = report["audit"]["verdicts"]
    samples = [(f'{{verdict="{v}"}}', verdicts.get(v, 0)) for v in (COMPLETE, "short", "over", CANNOT_TELL)]
    metric("audit_windows", "Audited windows by verdict.", samples)
    return "\n".join(lines) + "\n"
