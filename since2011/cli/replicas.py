"""``kafka2011 reassign`` and ``kafka2011 elect``: which brokers hold a modern partition, and which of them leads it."""

from __future__ import annotations

import time

import click

from kafka2011.cli.output import CONTEXT, fail, json_option, note, show
from kafka2011.types import TopicPartition
from since2011.cli.topics import needed_modern_option
from since2011.client.admin import Admin, AdminError, TopicRow
from since2011.client.replicas import PREFERRED, UNCLEAN, Replicas, Verdict
from since2011.topics.placement import replicated
from since2011.wire.error_codes import ErrorCode

INTERNAL_REPLICAS = 3
_LOOK_S = 0.2
Wanted = dict[TopicPartition, tuple[int, ...] | None]

partitions_argument = click.argument("names", nargs=-1, metavar="[TOPIC[:PARTITION]]...")


@click.command(context_settings=CONTEXT)
@partitions_argument
@needed_modern_option
@click.option("--to", metavar="ID,ID,…", help="Brokers that are to hold them, the preferred leader first.")
@click.option("--replicas", type=click.IntRange(min=1), help="So many of each; brokers are chosen.")
@click.option("--internal", is_flag=True, help="Three of each partition of the brokers' own topics, as far as may be.")
@click.option("--cancel", is_flag=True, help="Back to where they were.")
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), metavar="SECONDS", help="Until the moves are done.")
@json_option
def reassign(
    names: tuple[str, ...],
    modern: str,
    to: str | None,
    replicas: int | None,
    internal: bool,
    cancel: bool,
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Move replicas of modern topics to other brokers; without a wish, show the moves under way.

    \b
    kafka2011 reassign clicks:0 --to 3,1 --modern 127.0.0.1:9192 --wait 60
    kafka2011 reassign clicks --replicas 3 --modern 127.0.0.1:9192      # more copies, or fewer
    kafka2011 reassign --internal --modern 127.0.0.1:9192               # after more brokers have come
    kafka2011 reassign --modern 127.0.0.1:9192                          # what is under way
    kafka2011 reassign clicks --cancel --modern 127.0.0.1:9192

    Partitions are read and written while they move. A replica that is to go leaves when all new ones are in sync.
    """
    if sum((to is not None, replicas is not None, internal, cancel)) > 1:
        raise click.UsageError("--to, --replicas, --internal and --cancel are one wish each")
    with Replicas(modern) as client:
        if names or internal:
            wanted = _wanted(modern, client, names, to, replicas, internal, cancel)
            _refuse(client.move(wanted))
            note(f"{len(wanted)} partitions: {'cancelled' if cancel else 'begun'}")
            if wait_s is not None:
                _wait(client, set(wanted), wait_s)
        if (not names and not internal) or as_json:
            rows = [
                {
                    "partition": str(move.partition),
                    "replicas": _ids(move.replicas),
                    "coming": _ids(move.adding),
                    "going": _ids(move.removing),
                }
                for move in client.moves()
            ]
            show(rows, as_json=as_json, empty="no partition is being moved")


@click.command(context_settings=CONTEXT)
@partitions_argument
@needed_modern_option
@click.option("--unclean", is_flag=True, help="Where nobody leads: any replica that lives, whatever it lacks.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def elect(names: tuple[str, ...], modern: str, unclean: bool, yes: bool, as_json: bool) -> None:
    """Let the first replica of each partition lead again; everywhere, if no topic is named.

    \b
    kafka2011 elect --modern 127.0.0.1:9192                       # after a broker has come back
    kafka2011 elect clicks:0 --unclean --modern 127.0.0.1:9192    # nobody in sync will come back

    With --unclean, records that only the lost replicas had are gone, though they were acknowledged.
    """
    if unclean and not names:
        raise click.UsageError("--unclean loses records: name the partitions")
    if unclean and not yes and not click.confirm("records that only the lost replicas have are given up?", err=True):
        fail("nothing was done")
    chosen = list(_chosen(modern, names)) if names else None
    with Replicas(modern) as client:
        verdicts = client.elect(UNCLEAN if unclean else PREFERRED, chosen)
    rows: list[dict[str, object]] = [
        {"partition": str(verdict.partition), "result": (verdict.sentence or "refused") if verdict.error else "elected"}
        for verdict in verdicts
    ]
    show(rows, as_json=as_json, empty="every partition is led by its first replica")
    if any(verdict.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED) for verdict in verdicts):
        fail("not every partition could be given that leader")


def _wanted(
    modern: str,
    client: Replicas,
    names: tuple[str, ...],
    to: str | None,
    n_replicas: int | None,
    internal: bool,
    cancel: bool,
) -> Wanted:
    """Where each partition is to lie."""
    chosen = _chosen(modern, names, internal=internal)
    if not chosen:
        raise AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    if cancel:
        return dict.fromkeys(chosen)
    if to is not None:
        return dict.fromkeys(chosen, _brokers(to))
    if internal:
        n_replicas = min(INTERNAL_REPLICAS, len(client.brokers))
    if n_replicas is None:
        raise click.UsageError("say where to: --to, --replicas or --internal; or --cancel")
    wanted: Wanted = {}
    racks: dict[int, str | None] = dict.fromkeys(client.brokers)
    for topic in dict.fromkeys(key.topic for key in chosen):
        held = {key.partition: replicas for key, replicas in chosen.items() if key.topic == topic}
        placed = replicated(held, racks, n_replicas)
        wanted |= {TopicPartition(topic, index): replicas for index, replicas in placed.items()}
    return wanted


def _chosen(modern: str, names: tuple[str, ...], *, internal: bool = False) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions meant, with the brokers that hold them."""
    parsed = [_parsed(name) for name in names]
    with Admin(modern) as client:
        topics = client.topics(None if internal else list(dict.fromkeys(name for name, _ in parsed)))
    if internal:
        return {key: replicas for topic in topics if topic.internal for key, replicas in _held(topic).items()}
    held = {key: replicas for topic in topics for key, replicas in _held(topic).items()}
    missing = [f"{name}:{at}" for name, at in parsed if at is not None and TopicPartition(name, at) not in held]
    if missing:
        raise AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {missing[0]}")
    return {
        key: replicas
        for key, replicas in held.items()
        if (key.topic, None) in parsed or (key.topic, key.partition) in parsed
    }


def _held(topic: TopicRow) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition(topic.name, row.index): row.replicas for row in topic.partitions if topic.era == "modern"}


def _parsed(name: str) -> tuple[str, int | None]:
    topic, colon, index = name.partition(":")
    if not colon:
        return topic, None
    if not topic or not index.isdecimal():
        raise click.UsageError(f"{name!r}: write TOPIC or TOPIC:PARTITION")
    return topic, int(index)


def _brokers(text: str) -> tuple[int, ...]:
    ids = text.split(",")
    if not all(one.strip().isdecimal() for one in ids):
        raise click.UsageError(f"--to {text!r}: write broker ids with commas between, as in 3,1")
    return tuple(int(one) for one in ids)


def _refuse(verdicts: list[Verdict]) -> None:
    refused = [verdict for verdict in verdicts if verdict.error]
    for verdict in refused:
        note(f"{verdict.partition}: {verdict.sentence or f'error {verdict.error}'}")
    if refused:
        fail(f"{len(refused)} of {len(verdicts)} partitions were refused")


def _wait(client: Replicas, keys: set[TopicPartition], at_most_s: float) -> None:
    deadline = time.monotonic() + at_most_s
    while left := [move for move in client.moves() if move.partition in keys]:
        if time.monotonic() > deadline:
            fail(f"{len(left)} partitions are still being moved; see: kafka2011 reassign")
        time.sleep(_LOOK_S)
    note("done")


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
