"""``etl plan``, ``run`` and ``backfill``: what moves data."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from hadoop_etl.announce import Announcer
from hadoop_etl.cli.options import (
    dry_run_option,
    load_options,
    open_load_run,
    run_options,
    topic_option,
    warehouse_option,
    world,
)
from hadoop_etl.errors import LoadError
from hadoop_etl.plan import Plan, read_plan
from hadoop_etl.planning import Planner
from hadoop_etl.report import FAILED, HALF_DONE
from hadoop_etl.state import load_uri
from hadoop_etl.storage import read_text, write_text
from hadoop_etl.warehouse import Warehouse
from kafka2011.cli.output import CONTEXT, json_option, note, show
from kafka2011.types import BrokerPartition


@click.command(context_settings=CONTEXT)
@warehouse_option
@topic_option
@load_options
@click.option("-o", "--output", metavar="FILE|URI", help="Write the plan here, for 'run --plan'.")
@json_option
def plan(output: str | None, as_json: bool, **chosen: Any) -> None:
    """Show what a load would read, per partition.

    \b
    kafka2011 etl plan -z 127.0.0.1:2181 -w warehouse -o tonight.json
    kafka2011 etl plan -b 127.0.0.1:9092 -w warehouse -t clicks:json
    """
    with world(chosen) as (warehouse, cluster, options, topics):
        made = Planner(warehouse, cluster, options).plan(topics)
    if output is not None:
        write_text(output, made.to_json())
        note(f"plan {made.load} with hash {made.hash} written to {output}")
    _show_plan(made, as_json)


@click.command(context_settings=CONTEXT)
@warehouse_option
@topic_option
@load_options
@run_options
@click.option("--plan", "plan_file", metavar="FILE|URI", help="Execute exactly this plan.")
@dry_run_option
@json_option
def run(plan_file: str | None, dry_run: bool, as_json: bool, **chosen: Any) -> None:
    """Load what is new and publish it in one commit per topic.

    \b
    kafka2011 etl run -z 127.0.0.1:2181 -w /data/warehouse
    kafka2011 etl run -b 127.0.0.1:9092 -w warehouse -t clicks --master inline
    kafka2011 etl run -z zk1:2181/kafka -w hdfs://nn:8020/warehouse --master spark://host:7077 --max-minutes 120
    kafka2011 etl run -z 127.0.0.1:2181 -w warehouse --plan tonight.json
    """
    announcer = Announcer() if dry_run else Announcer(chosen["metrics_file"], chosen["notify"], chosen["keep_days"])
    with announcer.watching(chosen["warehouse"]):
        saved = None if plan_file is None else _saved(plan_file)
        with world(chosen) as (warehouse, cluster, options, topics):
            if dry_run:
                _show_plan(saved or Planner(warehouse, cluster, options).plan(topics), as_json)
                return
            with open_load_run(chosen, warehouse, cluster, options, announcer) as load:
                report = load.run(topics, saved)
        _finish(report, warehouse, as_json)


@click.command(context_settings=CONTEXT)
@warehouse_option
@click.argument("topic")
@load_options
@run_options
@click.option("--partition", metavar="BROKER-PARTITION", help="Only this partition.")
@click.option("--from", "start", type=int, metavar="OFFSET", help="Only holes that begin here or later.")
@click.option("--to", "end", type=int, metavar="OFFSET", help="Only holes that end here or earlier.")
@dry_run_option
@json_option
def backfill(
    topic: str, partition: str | None, start: int | None, end: int | None, dry_run: bool, as_json: bool, **chosen: Any
) -> None:
    """Load what the table lacks and the brokers (again) hold: recorded gaps, and offsets before its first.

    \b
    kafka2011 etl backfill clicks -z 127.0.0.1:2181 -w warehouse
    kafka2011 etl backfill clicks -b 127.0.0.1:9092 -w warehouse --partition 0-1 --from 0 --to 4096 --dry-run
    """
    part = None if partition is None else BrokerPartition.parse(partition)
    announcer = Announcer() if dry_run else Announcer(chosen["metrics_file"], chosen["notify"], chosen["keep_days"])
    with announcer.watching(chosen["warehouse"]):
        with (
            world({**chosen, "topics": (topic,)}) as (warehouse, cluster, options, _),
            open_load_run(chosen, warehouse, cluster, options, announcer) as load,
        ):
            if dry_run:
                _show_plan(load.plan_backfill(topic, part, start, end), as_json)
                return
            report = load.backfill(topic, part, start, end)
        _finish(report, warehouse, as_json)


def _saved(place: str) -> Plan:
    try:
        return read_plan(read_text(place), place)
    except FileNotFoundError:
        raise click.UsageError(f"there is no plan at {place}; 'etl plan -o' writes one") from None


def _show_plan(made: Plan, as_json: bool) -> None:
    if as_json:
        click.echo(made.to_json())
        _end_with_errors(made)
        return
    rows = [
        {
            "topic": topic.topic,
            "partition": str(part.part),
            "from": part.start,
            "to": part.end,
            "bytes": part.size,
            "splits": len(part.splits),
            "format": topic.form.name,
            "gap": None if part.gap is None else f"{part.gap[0]} to {part.gap[1]}",
        }
        for topic in made.topics
        for part in topic.ranges
    ]
    show(rows, as_json=False, empty="nothing to load")
    _end_with_errors(made)


def _end_with_errors(made: Plan) -> None:
    """Say which topics could not be planned, and end with it if there are any."""
    failed = [topic for topic in made.topics if topic.error is not None]
    for topic in failed:
        note(f"kafka2011: {topic.topic}: {topic.error}")
    if failed:
        sys.exit(FAILED if len(failed) == len(made.topics) else HALF_DONE)


def _finish(report: dict[str, Any], warehouse: Warehouse, as_json: bool) -> None:
    """Print the report and end with what it says."""
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        columns = ("topic", "version", "rows", "dead", "late", "bytes", "left")
        show([{name: topic[name] for name in columns} for topic in report["topics"]], as_json=False)
        note(f"{report['load']} {report['state']}; report: {load_uri(warehouse, report['load'])}")
    for topic in report["topics"]:
        if topic["error"]:
            note(f"kafka2011: {topic['topic']} was not published: {topic['error']}")
        if topic["missing"]:
            left_out = ", ".join(topic["missing"])
            note(f"kafka2011: {topic['topic']}: left out {left_out}, their broker is not registered; load again later")
    if report["error"]:
        raise LoadError(report["error"])
    sys.exit(report["exit_code"])
