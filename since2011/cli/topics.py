"""``kafka2011 topics``: topics of both eras, those of 2011 on its port or disk, modern ones on the modern port.

With ``--modern HOST:PORT`` a broker's modern port is asked, which knows both kinds. Without it the commands are the
paper's half's (``kafka2011.cli.topics``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import click

from kafka2011.cli import topics as paper
from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show
from since2011.client.admin import Admin, AdminError, TopicRow
from since2011.wire.error_codes import ErrorCode
from zk_registry.modern.texts import encode_id

KEY_WARNING = (
    "records with a key go to other partitions from now on (hash of the key mod partitions). What was written stays "
    "where it is, so a key's order holds before and after the growth, not across it; compacted topics keep both copies"
)

modern_option = click.option("--modern", metavar="HOST:PORT", help="A broker's modern port (its modern.port).")
needed_modern_option = click.option(
    "--modern", required=True, metavar="HOST:PORT", help="A broker's modern port (its modern.port)."
)
config_option = click.option(
    "--config", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting of the topic; may be repeated."
)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def topics() -> None:
    """List, describe, create, alter and delete topics of both eras (§3, §3.1)."""


@topics.command("list", context_settings=CONTEXT)
@modern_option
@paper.source_options
@json_option
def list_topics(modern: str | None, admin: str | None, log_dir: Path | None, as_json: bool) -> None:
    """One line per topic.

    \b
    kafka2011 topics list --modern 127.0.0.1:9192             # both eras
    kafka2011 topics list --log-dir data                      # 2011 topics, from their files
    kafka2011 topics list --admin 127.0.0.1:8011 --json       # 2011 topics of a running broker
    """
    if modern is None:
        cast(Callable[..., None], paper.list_topics.callback)(admin=admin, log_dir=log_dir, as_json=as_json)
        return
    with Admin(modern) as client:
        rows = [{"topic": t.name, "era": t.era, "partitions": len(t.partitions)} for t in client.topics()]
    show(rows, as_json=as_json, empty="no topics yet")


@topics.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@modern_option
@paper.source_options
@click.option("--under-replicated-partitions", is_flag=True, help="Only those with replicas that are not in sync.")
@click.option("--unavailable-partitions", is_flag=True, help="Only those nobody leads.")
@json_option
def describe(
    names: tuple[str, ...],
    modern: str | None,
    admin: str | None,
    log_dir: Path | None,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    as_json: bool,
) -> None:
    """One line per partition: with --modern leader and replicas, else offsets, size and segments.

    \b
    kafka2011 topics describe clicks --modern 127.0.0.1:9192
    kafka2011 topics describe --modern 127.0.0.1:9192 --under-replicated-partitions
    kafka2011 topics describe clicks --log-dir data
    kafka2011 topics describe --admin 127.0.0.1:8011 --json      # all topics, with every segment

    FLUSHED OFFSET is where a consumer that has read everything stands; what lies beyond is not on disk yet.
    A partition whose log is damaged has no offsets; the reason is told below the table.
    """
    if modern is None:
        if under_replicated_partitions or unavailable_partitions:
            raise click.UsageError("topics of 2011 have no replicas: these options need --modern")
        show_paper = cast(Callable[..., None], paper.describe.callback)
        show_paper(names=names, admin=admin, log_dir=log_dir, as_json=as_json)
        return
    with Admin(modern) as client:
        found = client.topics(names or None)
    rows, empty = [row for topic in found for row in _partitions(topic, as_json)], "no topics yet"
    if under_replicated_partitions or unavailable_partitions:
        rows, empty = [row for row in rows if _is_wanted(row, unavailable_partitions)], "none"
    show(rows, as_json=as_json, empty=empty)
    for topic in found if not as_json else ():
        if topic.settings:
            own = ", ".join(f"{name}={value}" for name, value in sorted(topic.settings.items()))
            note(f"{topic.name} sets {own}")


def _is_wanted(row: Mapping[str, object], unavailable: bool) -> bool:
    return row["leader"] == "none" if unavailable else row["under_replicated"] in (True, "yes")


def _partitions(topic: TopicRow, as_json: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for partition in topic.partitions:
        row: dict[str, object] = {"topic": topic.name, "era": topic.era, "partition": partition.index}
        row["leader"] = partition.leader if partition.leader >= 0 else "none"
        row["replicas"] = list(partition.replicas) if as_json else ",".join(map(str, partition.replicas))
        row["in_sync"] = list(partition.isr) if as_json else ",".join(map(str, partition.isr))
        lacking = len(partition.isr) < len(partition.replicas)
        row["under_replicated"] = lacking if as_json else "yes" if lacking else ""
        if as_json:
            row |= {"topic_id": encode_id(topic.topic_id), "epoch": partition.leader_epoch}
            row |= {"settings": dict(topic.settings), "internal": topic.internal}
        rows.append(row)
    return rows


@topics.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@modern_option
@click.option("--partitions", type=click.IntRange(min=1), help="How many; default: the broker's num.partitions.")
@click.option("--replicas", type=click.IntRange(min=1), help="Of each; default: default.replication.factor.")
@config_option
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no error.")
@click.option("-b", "--broker", envvar="KAFKA2011_BROKER", metavar="HOST:PORT[,…]", help="Of 2011, on these brokers.")
@click.option("-z", "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="Of 2011, on every broker registered there.")
def create(
    names: tuple[str, ...],
    modern: str | None,
    partitions: int | None,
    replicas: int | None,
    pairs: tuple[str, ...],
    if_not_exists: bool,
    broker: str | None,
    zookeeper: str | None,
) -> None:
    """Create topics: modern ones with --modern, else of 2011 on every broker, before the first message.

    \b
    kafka2011 topics create clicks --modern 127.0.0.1:9192 --partitions 3 --replicas 3 --config retention.ms=3600000
    kafka2011 topics create views --modern 127.0.0.1:9192 --config log.format=2011
    kafka2011 topics create clicks views -z 127.0.0.1:2181
    kafka2011 topics create clicks -b 127.0.0.1:9092,127.0.0.1:9093

    A broker of 2011 creates a topic when it is first written to. With keys that is too late: the first ones are spread
    over the few partitions there are, and go elsewhere once every broker has the topic.
    """
    if modern is None:
        if partitions is not None or replicas is not None or pairs or if_not_exists:
            raise click.UsageError(
                "--partitions, --replicas, --config and --if-not-exists need --modern: 2011 has the broker's"
            )
        cast(Callable[..., None], paper.create.callback)(names=names, broker=broker, zookeeper=zookeeper)
        return
    settings = _settings(pairs)
    with Admin(modern) as client:
        for name in names:
            try:
                n = client.create(name, partitions=partitions or -1, replicas=replicas or -1, settings=settings)
            except AdminError as error:
                if not (if_not_exists and error.error == ErrorCode.TOPIC_ALREADY_EXISTS):
                    raise
                note(f"{name} is there already")
                continue
            kind = "a topic of 2011" if settings.get("log.format") == "2011" else "a modern topic"
            note(f"{name} is there: {kind} with {n} partition{'s' if n > 1 else ''}")


@topics.command(context_settings=CONTEXT)
@click.argument("name", metavar="TOPIC")
@needed_modern_option
@click.option("--partitions", type=click.IntRange(min=1), help="Grow to so many in all.")
@config_option
@click.option("--delete-config", "deleted", multiple=True, metavar="NAME", help="Back to the default; may be repeated.")
def alter(name: str, modern: str, partitions: int | None, pairs: tuple[str, ...], deleted: tuple[str, ...]) -> None:
    """Give a modern topic more partitions or other settings; they hold at once.

    \b
    kafka2011 topics alter clicks --modern 127.0.0.1:9192 --partitions 6
    kafka2011 topics alter clicks --modern 127.0.0.1:9192 --config cleanup.policy=compact --delete-config retention.ms
    """
    settings = _settings(pairs)
    if partitions is None and not settings and not deleted:
        raise click.UsageError("say what to alter: --partitions, --config or --delete-config")
    with Admin(modern) as client:
        if settings or deleted:
            client.alter(name, settings, deleted)
            note(f"{name} has its new settings")
        if partitions is not None:
            client.grow(name, partitions)
            note(f"{name} has {partitions} partitions")
            note(f"mind: {KEY_WARNING}")


@topics.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@needed_modern_option
@click.option("--if-exists", is_flag=True, help="A topic that is not there is no error.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], modern: str, if_exists: bool, yes: bool) -> None:
    """Delete modern topics and their records, for good.

    \b
    kafka2011 topics delete clicks --modern 127.0.0.1:9192
    kafka2011 topics delete clicks views --modern 127.0.0.1:9192 --if-exists --yes      # in a script
    """
    if not yes and not click.confirm(f"delete {', '.join(names)} with everything in them?", err=True):
        fail("nothing was deleted")
    with Admin(modern) as client:
        for name in names:
            try:
                client.delete(name)
            except AdminError as error:
                if not (if_exists and error.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    raise
                note(f"{name} is not there")
                continue
            note(f"{name} is gone")


def _settings(pairs: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--config {pair!r}: write NAME=VALUE, as in retention.ms=3600000")
        settings[name.strip()] = value.strip()
    return settings
