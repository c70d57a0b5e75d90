"""``etl status``, ``audit`` and ``report``: what one asks in the morning."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict

import click

from hadoop_etl.audit import audit, exit_code
from hadoop_etl.cli.options import cluster_options, warehouse_option
from hadoop_etl.cluster import open_cluster
from hadoop_etl.report import html
from hadoop_etl.state import read_report, status
from hadoop_etl.warehouse import Warehouse
from kafka2011.cli.output import CONTEXT, fail, json_option, note, show
from kafka2011.clock import SYSTEM_CLOCK


@click.command("status", context_settings=CONTEXT)
@warehouse_option
@json_option
def show_status(warehouse: str, as_json: bool) -> None:
    """Say whether the last load is committed, half done or nothing, and where each partition stands.

    \b
    kafka2011 etl status -w warehouse
    kafka2011 etl status -w warehouse --json
    """
    place = Warehouse(warehouse)
    found = status(place)
    rows = []
    for topic in place.topics():
        state = place.table(topic).state()
        for part, offset in sorted(state.offsets.items()):
            row = {"topic": topic, "partition": str(part), "next_offset": offset, "version": state.version}
            rows.append({**row, "last_load": state.notes["load"]})
    if as_json:
        click.echo(json.dumps({**asdict(found), "partitions": rows}, indent=2))
        return
    note(f"{found.state}: load {found.load}" if found.load else "nothing: no load was planned yet")
    if found.unpublished:
        note(f"not published: {', '.join(found.unpublished)}; run the load again, it begins where the tables say")
    if found.unsettled:
        note(
            f"the quarantine has yet to follow: {', '.join(found.unsettled)}; our readers see it whole, others when a "
            "load has run again"
        )
    if found.running:
        note(f"running now: {found.running}")
    show(rows, as_json=False, empty="no table yet")


@click.command("audit", context_settings=CONTEXT)
@warehouse_option
@click.option("-t", "--topic", "topics", multiple=True)
@click.option("--days", type=float, help="Only windows of the last so many days.")
@click.option("--all", "every", is_flag=True, help="Show complete windows too.")
@cluster_options
@json_option
def show_audit(
    warehouse: str,
    topics: tuple[str, ...],
    days: float | None,
    every: bool,
    zookeeper: str | None,
    broker: str | None,
    as_json: bool,
) -> None:
    """Compare what producers said they sent with what was loaded, per window. Exit code 0, 1 or 3.

    A topic no producer ever reported is not audited; name it with --topic if it should be.

    With --zookeeper or --broker it also counts what waits on the brokers.

    \b
    kafka2011 etl audit -w warehouse
    kafka2011 etl audit -w warehouse -t clicks --days 1 -z 127.0.0.1:2181 --json
    """
    now_ms = SYSTEM_CLOCK.wall_ms()
    since_ms = 0 if days is None else now_ms - round(days * 86_400_000)
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(zookeeper, broker)) if zookeeper or broker else None
        place = Warehouse(warehouse)
        windows = audit(
            place, now_ms=now_ms, since_ms=since_ms, topics=topics, cluster=cluster, must_report=bool(topics)
        )
    shown = [w.as_dict() for w in windows if every or as_json or w.verdict != "complete"]
    show(shown, as_json=as_json, empty="every window is complete" if windows else "nothing to audit")
    sys.exit(exit_code(windows))


@click.command("report", context_settings=CONTEXT)
@warehouse_option
@click.argument("load", required=False)
@click.option("--html", "as_html", is_flag=True, help="Print the page instead of the JSON.")
def show_report(warehouse: str, load: str | None, as_html: bool) -> None:
    """Print the report of a load, by default of the last one.

    \b
    kafka2011 etl report -w warehouse
    kafka2011 etl report -w warehouse --html > report.html
    """
    report = read_report(Warehouse(warehouse), load)
    if report is None:
        fail(f"there is no report of a load {load!r}" if load else "no load has written a report here yet")
    click.echo(html(report) if as_html else json.dumps(report, indent=1))
