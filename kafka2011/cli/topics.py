"""``kafka2011 topics``: which topics a broker has, how big they are, which offsets they hold."""

from __future__ import annotations

import http.client
import json
import stat
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from kafka2011.cli.output import CONTEXT, CommandGroup, admin_url, check_topic, fail, json_option, note, show
from kafka2011.log.checkpoint import Checkpoint, read_checkpoint
from kafka2011.producer.producer import Producer

Topics = dict[str, dict[int, dict[str, Any]]]
"""Topic to partition to what ``/state`` says of it."""


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def topics() -> None:
    """List, describe and create topics (§3, §3.1)."""


def source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the two places topics can be read from."""
    admin = click.option(
        "--admin", metavar="HOST:PORT", envvar="KAFKA2011_ADMIN", help="A broker's admin HTTP (its admin.port)."
    )
    directory = click.Path(path_type=Path, exists=True, file_okay=False)
    log_dir = click.option("--log-dir", type=directory, help="A data directory, read directly.")
    return admin(log_dir(command))


@topics.command("list", context_settings=CONTEXT)
@source_options
@json_option
def list_topics(admin: str | None, log_dir: Path | None, as_json: bool) -> None:
    """One line per topic.

    \b
    kafka2011 topics list --log-dir data
    kafka2011 topics list --admin 127.0.0.1:8011 --json
    """
    found = _topics(admin, log_dir)
    rows = [
        {
            "topic": topic,
            "partitions": len(partitions),
            "segments": sum(len(p["segments"]) for p in partitions.values()),
            "bytes": sum(p["size"] for p in partitions.values()),
        }
        for topic, partitions in sorted(found.items())
    ]
    show(rows, as_json=as_json, empty="no topics yet")
    _tell_trouble(found)


@topics.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@source_options
@json_option
def describe(names: tuple[str, ...], admin: str | None, log_dir: Path | None, as_json: bool) -> None:
    """One line per partition: first and last offset, size, segments.

    \b
    kafka2011 topics describe clicks --log-dir data
    kafka2011 topics describe --admin 127.0.0.1:8011 --json      # all topics, with every segment

    FLUSHED OFFSET is where a consumer that has read everything stands; what lies beyond is not on disk yet.
    A partition whose log is damaged has no offsets; the reason is told below the table.
    """
    found = _topics(admin, log_dir)
    for name in names:
        if name not in found:
            fail(f"there is no topic {name!r} here; there are: {', '.join(sorted(found)) or 'none'}")
    chosen = {topic: found[topic] for topic in names or sorted(found)}
    rows = []
    for topic, partitions in chosen.items():
        for partition, facts in sorted(partitions.items()):
            segments = facts["segments"]
            row = {
                "topic": topic,
                "partition": partition,
                "first_offset": facts["first_offset"],
                "flushed_offset": facts["flushed_offset"],
                "end_offset": facts["end_offset"],
                "bytes": facts["size"],
                "segments": segments if as_json else len(segments),
            }
            rows.append(row | {"offline": facts["offline"], "missing": facts["missing"]} if as_json else row)
    show(rows, as_json=as_json, empty="no topics yet")
    _tell_trouble(chosen)


@topics.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-b", "--broker", envvar="KAFKA2011_BROKER", metavar="HOST:PORT[,…]", help="On these brokers.")
@click.option("-z", "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="On every broker registered in ZooKeeper.")
def create(names: tuple[str, ...], broker: str | None, zookeeper: str | None) -> None:
    """Create topics on every broker, before the first message.

    A broker of 2011 creates a topic when it is first written to. With keys that is too late: the first ones are spread
    over the few partitions there are, and go elsewhere once every broker has the topic.

    \b
    kafka2011 topics create clicks views -z 127.0.0.1:2181
    kafka2011 topics create clicks -b 127.0.0.1:9092,127.0.0.1:9093
    """
    if zookeeper is not None:
        broker = None
    for name in names:
        check_topic(name)
    with Producer(broker, zookeeper=zookeeper) as producer:
        for name in names:
            producer.create(name)
            note(f"{name} is there")


def _tell_trouble(found: Topics) -> None:
    n_missing = 0
    for topic, partitions in sorted(found.items()):
        for partition, facts in sorted(partitions.items()):
            if facts["offline"]:
                note(f"{topic}-{partition} is not served: {facts['offline']}")
            for one in facts["missing"]:
                n_missing += 1
                note(f"{topic}-{partition}: {one['file']} is gone, with the offsets {one['start']} to {one['end']}")
    if n_missing:
        note("put the files back and restart the broker, or say that you know: kafka2011 log accept")


def _topics(admin: str | None, log_dir: Path | None) -> Topics:
    if (admin is None) == (log_dir is None):
        raise click.UsageError("say where to look: --admin HOST:PORT of a running broker, or --log-dir DIRECTORY")
    return _from_directory(log_dir) if log_dir is not None else _from_broker(str(admin))


def _from_broker(admin: str) -> Topics:
    url, port = admin_url(admin, "/state")
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - http://
            state = json.load(reply)
        found: Topics = {
            topic: {
                int(partition): facts | {"offline": None, "missing": state["missing"].get(f"{topic}-{partition}", [])}
                for partition, facts in what["partitions"].items()
            }
            for topic, what in state["topics"].items()
        }
        offline = state["offline"].items()
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
        why = getattr(error, "reason", None) or error
        fail(f"no broker answers at {url} ({why}); was it started with --set admin.port={port}?")
    for name, reason in offline:
        topic, _, partition = name.rpartition("-")
        found.setdefault(topic, {})[int(partition)] = _offline(reason.partition(" is offline: ")[2] or reason)
    return found


def _offline(reason: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("first_offset", "flushed_offset", "end_offset"))
    return nothing | {"size": 0, "segments": [], "offline": reason, "missing": []}


def _from_directory(log_dir: Path) -> Topics:
    found: Topics = {}
    checkpoint = read_checkpoint(log_dir) or Checkpoint()
    for directory in sorted(log_dir.iterdir()):
        topic, dash, partition = directory.name.rpartition("-")
        if not (dash and topic and partition.isdigit() and directory.is_dir()):
            continue
        segments = sorted(_segments(directory), key=lambda segment: segment["start"])
        corrupt = sorted(f.name for f in directory.glob("*.kafka.corrupt") if not f.with_suffix("").exists())
        if corrupt:
            found.setdefault(topic, {})[int(partition)] = _offline(f"{directory / corrupt[0]} was quarantined")
        elif segments:
            end = segments[-1]["start"] + segments[-1]["size"]
            found.setdefault(topic, {})[int(partition)] = {
                "first_offset": segments[0]["start"],
                "flushed_offset": None,
                "end_offset": end,
                "size": sum(segment["size"] for segment in segments),
                "segments": segments,
                "offline": None,
                "missing": [
                    {"file": one.name, "start": one.start, "end": one.end}
                    for one in checkpoint.missing.get(directory.name, ())
                ],
            }
    return found


def _segments(directory: Path) -> Iterator[dict[str, int]]:
    for file in directory.glob("*.kafka"):
        if file.stem.isdigit():
            try:
                facts = file.lstat()
            except FileNotFoundError:
                continue  # the broker's retention was quicker
            if stat.S_ISREG(facts.st_mode):
                yield {"start": int(file.stem), "size": facts.st_size, "mtime_ms": facts.st_mtime_ns // 1_000_000}
