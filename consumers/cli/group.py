"""``kafka2011 group``: who is in a group, how far it got, and moving it elsewhere.

Paper: §3.2; lag is what LinkedIn's operators watched (§4).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime

import click

from consumers.admin import Groups
from consumers.algorithm1.reasons import difference
from consumers.algorithm1.registries import View
from consumers.event_time import DEFAULT_FIELD
from consumers.groups import PartitionRow, ZooKeeperGroups, sources
from kafka2011.cli.offset_choice import parse_time
from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show, zookeeper_option
from kafka2011.clock import SYSTEM_CLOCK

_REFRESH_S = 1.0


modern_option = click.option(
    "--modern",
    metavar="HOST:PORT",
    help="Ask this modern port instead of ZooKeeper (where brokers publish theirs).",
)


def _where(zookeeper: str, modern: str | None) -> dict[str, str]:
    return {"zookeeper": zookeeper} if modern is None else {"modern": modern}


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def group() -> None:
    """Consumer groups: list, describe, seek (§3.2)."""


@group.command("list", context_settings=CONTEXT)
@zookeeper_option
@modern_option
@json_option
def list_groups(zookeeper: str, modern: str | None, as_json: bool) -> None:
    """Every group, of every protocol that can be reached.

    \b
    kafka2011 group list
    kafka2011 group list -z 127.0.0.1:2181/kafka --json
    kafka2011 group list --modern 127.0.0.1:9192
    """
    rows = []
    with ExitStack() as stack:
        for source in sources(_where(zookeeper, modern)):
            stack.callback(source.close)
            rows += [
                {"group": row.group, "protocol": row.protocol, "members": row.members, "topics": ",".join(row.topics)}
                for row in source.groups()
            ]
    show(rows, as_json=as_json, empty="no group has registered yet")


@group.command(context_settings=CONTEXT)
@click.argument("name", metavar="GROUP")
@zookeeper_option
@modern_option
@click.option("--watch", is_flag=True, help="Again every second, until Ctrl-C.")
@json_option
def describe(name: str, zookeeper: str, modern: str | None, watch: bool, as_json: bool) -> None:
    """Owner, stored offset, end of the log and lag of each partition, in bytes and, for dated events, seconds.

    With --watch also what changed since the last look: what the members rebalance for.

    \b
    kafka2011 group describe billing
    kafka2011 group describe billing --watch
    """
    with ExitStack() as stack:
        opened = list(sources(_where(zookeeper, modern)))
        for source in opened:
            stack.callback(source.close)
        of_algorithm1 = [source for source in opened if watch and isinstance(source, ZooKeeperGroups)]
        before: list[View] = []
        while True:
            now = [source.view(name) for source in of_algorithm1]
            for words in [words for pair in zip(before, now, strict=False) for words in difference(*pair)]:
                note(f"since the last look: {words}")
            before = now
            known = [found for source in opened if (found := source.describe(name)) is not None]
            if not known:
                fail(f"no group is called {name!r} at {modern or zookeeper}; see: kafka2011 group list")
            rows = [_columns(row) for found in known for row in found]
            show(rows, as_json=as_json, empty="the group reads nothing yet")
            if not watch:
                return
            SYSTEM_CLOCK.sleep(_REFRESH_S)
            note("")


def _columns(row: PartitionRow) -> Mapping[str, object]:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "owner": row.owner if row.in_the_way is None else f"nobody: {row.in_the_way}'s node has no session, delete it",
        "offset": row.offset,
        "log_end": row.log_end,
        "lag_bytes": row.lag,
        "lag_s": row.lag_s,
    }


@group.command(context_settings=CONTEXT)
@click.argument("name", metavar="GROUP")
@zookeeper_option
@click.option(
    "--to",
    required=True,
    metavar="WHERE",
    help="start, end, an offset, +N or -N messages, @TIME (ISO, or ms since 1970; to the segment, see --scan).",
)
@click.option("--topic", "topics", multiple=True, help="Only this topic (repeatable); default: all of the group.")
@click.option("--scan", is_flag=True, help="With @TIME: read on to the first message whose payload names that time.")
@click.option("--time-field", default=DEFAULT_FIELD, show_default=True, help="With --scan: the field with the time.")
@click.option("--execute", is_flag=True, help="Do it. Without this only the plan is shown.")
@click.option("--force", is_flag=True, help="Also while the group has members: what they store next may undo it.")
@json_option
def seek(
    name: str,
    zookeeper: str,
    to: str,
    topics: tuple[str, ...],
    scan: bool,
    time_field: str,
    execute: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Move a group's stored offsets: shows the plan; --execute writes exactly that plan.

    A broker of 2011 knows the times of its segment files only: @TIME is the start of the last segment begun before it.
    Where payloads carry a time (Avro, JSON), --scan reads that segment up to the first message of that time or later.
    A time without a zone is in this machine's zone.

    \b
    kafka2011 group seek billing --to start
    kafka2011 group seek billing --to -100 --topic clicks --execute
    kafka2011 group seek billing --to @2011-06-12T09:00 --execute
    kafka2011 group seek billing --to @2011-06-12T09:00+00:00 --scan --time-field ts
    kafka2011 group seek billing --to @1307869200000 --execute
    """
    if scan and not to.startswith("@"):
        raise click.UsageError("--scan goes with --to @TIME")
    if to.startswith("@"):
        time_ms = parse_time(to[1:])
        to = f"@{time_ms}"
        note(f"the time meant is {datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat()}")
    elif to not in ("start", "end") and not to.removeprefix("+" if to.startswith("+") else "-").isdecimal():
        raise click.UsageError(f"--to {to!r} is none of start, end, an offset, +N, -N, @TIME")
    with Groups(zookeeper) as groups:
        moves = groups.plan(name, to, topics=list(topics) or None, scan=scan, time_field=time_field)
        show(
            [
                {"topic": m.topic, "partition": str(m.partition), "old": m.old, "new": m.new, "why": m.why}
                for m in moves
            ],
            as_json=as_json,
            empty=f"group {name!r} has no offsets and no members; name a --topic",
        )
        if execute and moves:
            groups.apply(name, moves, force=force)
            note(f"{len(moves)} offsets of group {name} were written")
        else:
            note("NOTHING WAS CHANGED: this is the plan; add --execute to apply it")
