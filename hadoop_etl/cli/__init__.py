"""``kafka2011 etl``: the nightly load from the command line.

Exit codes: 0 done and it adds up, 1 failed or it does not add up, 2 wrong usage, 3 could not tell, 4 already running
(another command holds the warehouse's lock), 5 half done (some topics failed, the others were published).
"""

from __future__ import annotations

import os

import click

from hadoop_etl.cli.load import backfill, plan, run
from hadoop_etl.cli.morning import show_audit, show_report, show_status
from hadoop_etl.cli.tables import (
    compact_tables,
    migrate_tables,
    read_table,
    requeue_table,
    rewind_table,
    show_quarantine,
    vacuum_tables,
)
from kafka2011.cli.output import CONTEXT, CommandGroup


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def etl() -> None:
    """The nightly load: brokers to warehouse, exactly once, audited (§4).

    \b
    kafka2011 etl run -z 127.0.0.1:2181 -w warehouse          load everything new
    kafka2011 etl status -w warehouse                         committed, half done or nothing
    kafka2011 etl audit -w warehouse                          does it add up?
    """
    # What is read from the logs is no wider here than there; who shares a warehouse gives it a group afterwards.
    os.umask(0o077)


_LOAD = (plan, run, backfill)
_MORNING = (show_status, show_audit, show_report)
_TABLES = (rewind_table, compact_tables, vacuum_tables, show_quarantine, requeue_table, migrate_tables, read_table)
for command in (*_LOAD, *_MORNING, *_TABLES):
    etl.add_command(command)
