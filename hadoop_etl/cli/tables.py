"""``etl rewind``, ``compact``, ``vacuum``, ``quarantine``, ``requeue``, ``migrate`` and ``read``: the tables."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import asdict
from typing import Any

import click

from hadoop_etl.cli.options import (
    FORMATS,
    dry_run_option,
    open_schemas,
    time_options,
    times_said,
    warehouse_option,
)
from hadoop_etl.decoder_process import DecoderProcess
from hadoop_etl.formats import choose_format
from hadoop_etl.lock import locked
from hadoop_etl.migrate import migrate
from hadoop_etl.reading import events, quarantine
from hadoop_etl.requeue import requeue, sample_dead
from hadoop_etl.upkeep import KEEP_HOURS, compact, plan_rewind, rewind, vacuum
from hadoop_etl.warehouse import Warehouse
from kafka2011.cli.output import CONTEXT, json_option, note, show


@click.command("rewind", context_settings=CONTEXT)
@warehouse_option
@click.argument("topic")
@click.option("--to-version", type=int, required=True, help="A version of the table; 'etl read --versions' lists them.")
@dry_run_option
@json_option
def rewind_table(warehouse: str, topic: str, to_version: int, dry_run: bool, as_json: bool) -> None:
    """Take a table, rows and offsets together, back to an earlier version; the next load reads again from there.

    \b
    kafka2011 etl rewind clicks -w warehouse --to-version 3 --dry-run
    kafka2011 etl rewind clicks -w warehouse --to-version 3
    """
    place = Warehouse(warehouse)
    table = place.table(topic)
    with locked(place, "etl rewind"):
        planned = plan_rewind(table, to_version)
        if not dry_run:
            note(f"{topic} is now version {rewind(table, planned)}, equal to version {to_version}")
    moves = sorted(planned.positions.items())
    rows = [{"partition": str(part), "from": now.next, "to": then.next} for part, (now, then) in moves]
    removed, restored = (*planned.removed, *planned.dead.removed), (*planned.restored, *planned.dead.added)
    note(f"{len(removed)} files removed, {len(restored)} brought back" + " (dry run)" * dry_run)
    show(rows, as_json=as_json)


@click.command("compact", context_settings=CONTEXT)
@warehouse_option
@click.argument("topics", nargs=-1)
@json_option
def compact_tables(warehouse: str, topics: tuple[str, ...], as_json: bool) -> None:
    """Join small files, in a commit that changes no row.

    \b
    kafka2011 etl compact -w warehouse clicks
    kafka2011 etl compact -w warehouse
    """
    place = Warehouse(warehouse)
    with locked(place, "etl compact"):
        rows = [compact(place.table(topic)) for topic in topics or place.topics()]
    show(rows, as_json=as_json)


@click.command("vacuum", context_settings=CONTEXT)
@warehouse_option
@click.argument("topics", nargs=-1)
@click.option("--keep-hours", type=click.IntRange(0), default=KEEP_HOURS, show_default=True)
@dry_run_option
@json_option
def vacuum_tables(warehouse: str, topics: tuple[str, ...], keep_hours: int, dry_run: bool, as_json: bool) -> None:
    """Remove files no version of the last hours names, also those of loads that died. Rewind needs those versions.

    \b
    kafka2011 etl vacuum -w warehouse --keep-hours 168 --dry-run
    kafka2011 etl vacuum -w warehouse clicks
    """
    place = Warehouse(warehouse)
    with locked(place, "etl vacuum"):
        rows = [
            {"topic": topic, "file": file}
            for topic in topics or place.topics()
            for file in vacuum(place.table(topic), keep_hours, dry_run)
        ]
    show(rows, as_json=as_json, empty="nothing to remove")


@click.command("quarantine", context_settings=CONTEXT)
@warehouse_option
@click.argument("topic")
@click.option("-n", "--limit", type=click.IntRange(1), default=100, show_default=True)
@json_option
def show_quarantine(warehouse: str, topic: str, limit: int, as_json: bool) -> None:
    """Show messages that could not be read, and gaps: partition, offset, reason, bytes in hex.

    \b
    kafka2011 etl quarantine clicks -w warehouse --json
    kafka2011 etl quarantine clicks -w warehouse -n 5
    """
    rows = quarantine(Warehouse(warehouse).table(topic)).slice(0, limit).to_pylist()
    shown = [
        {
            "partition": f"{row['kbroker']}-{row['kpart']}",
            "offset": row["koffset"],
            "index": row["kidx"],
            "next_offset": row["knext"],
            "reason": row["kerror"],
            "bytes": None if row["value"] is None else row["value"].hex() if as_json else row["value"][:24].hex(),
        }
        for row in rows
    ]
    show(shown, as_json=as_json, empty="nothing in quarantine")


@click.command("requeue", context_settings=CONTEXT)
@warehouse_option
@click.argument("topic")
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True)
@click.option("--schemas", metavar="DIR|zookeeper", help="Avro schemas: a directory, or those in ZooKeeper.")
@click.option("-z", "--zookeeper", envvar="KAFKA2011_ZOOKEEPER", metavar="HOST:PORT[/CHROOT]", help="For --schemas.")
@time_options
@dry_run_option
@json_option
def requeue_table(
    warehouse: str,
    topic: str,
    form: str,
    schemas: str | None,
    zookeeper: str | None,
    dry_run: bool,
    as_json: bool,
    **times: Any,
) -> None:
    """Decode the quarantine again, after a fix, and move what can be read now to the table, exactly once.

    \b
    kafka2011 etl requeue clicks -w warehouse --dry-run
    kafka2011 etl requeue clicks -w warehouse --schemas schemas/
    """
    place = Warehouse(warehouse)
    table = place.table(topic)
    with locked(place, "etl requeue"), ExitStack() as stack:
        chosen = choose_format(
            topic,
            form,
            times_said(times),
            registry=open_schemas(schemas, zookeeper, stack),
            noted=table.state().notes.get("format"),
            sample=lambda: sample_dead(table),
        )
        decoder = stack.enter_context(closing(DecoderProcess(chosen)))
        done = requeue(table, chosen, decoder=decoder, dry_run=dry_run)
    for reason, count in done.reasons.items():
        note(f"still dead: {count} x {reason}")
    note(f"{done.rows} messages can be read now, {done.dead} still cannot" + " (dry run)" * dry_run)
    show([{"topic": topic, "version": done.version, "rows": done.rows, "dead": done.dead}], as_json=as_json)


@click.command("migrate", context_settings=CONTEXT)
@warehouse_option
@click.argument("topics", nargs=-1)
@dry_run_option
@json_option
def migrate_tables(warehouse: str, topics: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Move tables of an older edition over: dead rows to their own table, days to dates. Rows and offsets stay.

    \b
    kafka2011 etl migrate -w warehouse --dry-run
    kafka2011 etl migrate -w warehouse
    """
    place = Warehouse(warehouse)
    with locked(place, "etl migrate"):
        rows = [asdict(migrate(place.table(topic), dry_run=dry_run)) for topic in topics or place.topics()]
    show(rows, as_json=as_json, empty="no table yet")


@click.command("read", context_settings=CONTEXT)
@warehouse_option
@click.argument("topic")
@click.option("--version", type=int, help="As of an earlier version.")
@click.option("--versions", is_flag=True, help="List the versions instead.")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True)
@json_option
def read_table(warehouse: str, topic: str, version: int | None, versions: bool, limit: int, as_json: bool) -> None:
    """Show rows of a table, now or as of a version.

    \b
    kafka2011 etl read clicks -w warehouse -n 5
    kafka2011 etl read clicks -w warehouse --versions
    """
    table = Warehouse(warehouse).table(topic)
    if versions:
        rows = [
            {"version": number, "kind": noted["kind"], "load": noted["load"], "time_ms": noted["committed_ms"]}
            for number, noted in table.notes()
        ]
    else:
        rows = events(table, version).head(limit, use_threads=False).to_pylist()
    show(rows, as_json=as_json)
