"""``kafka2011 transactions``: who has one, how far it is, which one hangs, and an end to that."""

from __future__ import annotations

import click

from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show
from kafka2011.clock import SYSTEM_CLOCK
from since2011.cli.topics import needed_modern_option
from since2011.client.transactions import Open, TransactionAdmin


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def transactions() -> None:
    """List, describe, abort transactions; find those that hang."""


@transactions.command("list", context_settings=CONTEXT)
@needed_modern_option
@json_option
def list_transactions(modern: str, as_json: bool) -> None:
    """One line per transactional id.

    \b
    kafka2011 transactions list --modern 127.0.0.1:9192
    kafka2011 transactions list --modern 127.0.0.1:9192 --json
    """
    with TransactionAdmin(modern) as admin:
        rows = [
            {"id": each.transactional_id, "state": each.state, "producer": each.producer_id, "coordinator": broker}
            for broker, each in admin.transactions()
        ]
    show(rows, as_json=as_json, empty="no transactional ids yet")


@transactions.command(context_settings=CONTEXT)
@click.argument("name", metavar="TRANSACTIONAL_ID")
@needed_modern_option
@json_option
def describe(name: str, modern: str, as_json: bool) -> None:
    """One transactional id: state, producer, epoch, partitions.

    \b
    kafka2011 transactions describe copier-1 --modern 127.0.0.1:9192
    kafka2011 transactions describe copier-1 --modern 127.0.0.1:9192 --json
    """
    with TransactionAdmin(modern) as admin:
        found = admin.describe(name)
    partitions = [f"{topic.name}-{index}" for topic in found.topics for index in topic.partitions]
    row = {
        "id": name,
        "state": found.state,
        "producer": found.producer_id,
        "epoch": found.epoch,
        "timeout_ms": found.timeout_ms,
        "start_ms": found.start_ms,
        "partitions": " ".join(partitions),
    }
    show([row], as_json=as_json)


@transactions.command("find-hanging", context_settings=CONTEXT)
@needed_modern_option
@click.option("--minutes", default=15, show_default=True, type=click.IntRange(min=0), help="Open for at least so long.")
@json_option
def find_hanging(modern: str, minutes: int, as_json: bool) -> None:
    """Transactions that are open in a partition and that no coordinator knows: nobody will end them.

    \b
    kafka2011 transactions find-hanging --modern 127.0.0.1:9192
    kafka2011 transactions find-hanging --modern 127.0.0.1:9192 --minutes 60
    """
    with TransactionAdmin(modern) as admin:
        rows = [each._asdict() for each in admin.hanging(minutes * 60_000, SYSTEM_CLOCK.wall_ms())]
    show(rows, as_json=as_json, empty="none hangs")


@transactions.command(context_settings=CONTEXT)
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.option("--producer", required=True, type=int, help="The producer id whose transaction is open there.")
@needed_modern_option
def abort(topic: str, partition: int, producer: int, modern: str) -> None:
    """Write an ABORT marker into one partition, for a transaction that hangs there.

    \b
    kafka2011 transactions find-hanging --modern 127.0.0.1:9192
    kafka2011 transactions abort copied 0 --producer 4 --modern 127.0.0.1:9192
    """
    with TransactionAdmin(modern) as admin:
        found = [each for each in admin.open() if (each.topic, each.partition) == (topic, partition)]
        chosen: Open | None = next((each for each in found if each.producer_id == producer), None)
        if chosen is None:
            fail(f"producer {producer} has no open transaction in {topic}-{partition}")
        admin.abort(chosen)
    note(f"{topic}-{partition}: the transaction of producer {producer} from offset {chosen.start_offset} is aborted")
