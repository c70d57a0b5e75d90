"""``kafka2011 produce``: the 2011 command, and with ``--modern`` records with keys, headers and times.

The habits are kcat's: ``-K :`` splits lines into key and value, ``-H name=value`` adds a header to every record, ``-Z``
takes an empty value for none at all, which in a compacted topic deletes the key.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import click

from kafka2011.cli.output import check_topic, counted, fail, host_and_port, note
from kafka2011.cli.produce import produce as produce_2011
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from since2011.client.partitioner import partition_of_key
from since2011.client.records import RecordClient
from since2011.log.validation import CODECS
from since2011.wire.records import Record

BATCH = 500
"""Records of one request at most."""
_BATCH_BYTES = 512 << 10
_ONLY_2011 = ("zookeeper", "key_separator", "rate", "batch_size", "acks", "progress")

_OPTIONS = [
    click.Option(["-m", "--modern"], metavar="HOST:PORT[,…]", help="Write to the modern port: keys, headers, times."),
    click.Option(["-K", "--key-delimiter"], metavar="TEXT", help="With -m: lines are KEY TEXT VALUE."),
    click.Option(["-H", "--header", "headers"], multiple=True, metavar="NAME=VALUE", help="With -m: on every record."),
    click.Option(["-T", "--timestamp"], type=click.IntRange(min=0), metavar="MS", help="With -m: instead of now."),
    click.Option(["-Z", "--null"], is_flag=True, help="With -m: an empty value is none, which deletes a key."),
]


def _invoke(modern: str | None, **given: Any) -> None:
    extras = {name: given.pop(name) for name in ("key_delimiter", "headers", "timestamp", "null")}
    if modern is None:
        if any(value not in (None, (), False) for value in extras.values()):
            raise click.UsageError("-K, -H, -T and -Z need --modern: a 2011 message has no key, headers or time")
        if given["codec"] in ("lz4", "zstd"):
            raise click.UsageError(f"--codec {given['codec']} needs --modern: 2011 knew gzip and snappy")
        assert produce_2011.callback is not None
        produce_2011.callback(**given)
        return
    context = click.get_current_context()
    for name in _ONLY_2011:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for 2011 topics, not with --modern")
    _produce(modern, given["topic"], given["partition"], given["files"], given["codec"], **extras)


def _produce(
    modern: str,
    topic: str,
    partition: int | None,
    files: Sequence[BinaryIO],
    codec: str,
    *,
    key_delimiter: str | None,
    headers: Sequence[str],
    timestamp: int | None,
    null: bool,
) -> None:
    check_topic(topic)
    told = [_header(text) for text in headers]
    sent = 0
    number = CODECS["uncompressed" if codec == "none" else codec]
    with RecordClient([host_and_port(part, 9192) for part in modern.split(",")], topic) as client:
        try:
            partitions = client.partitions(create=True)
            keyless = itertools.cycle(partitions)
            for lines in _batches(files or (sys.stdin.buffer,)):
                now = SYSTEM_CLOCK.wall_ms() if timestamp is None else timestamp
                where: dict[int, list[Record]] = {}
                # As Kafka's producers do: records without a key go to one partition a batch.
                sticky = next(keyless)
                for line in lines:
                    key, value = _split(line, key_delimiter)
                    place = sticky if key is None else partition_of_key(key, len(partitions))
                    record = Record(0, now, key, None if null and not value else value, told)
                    where.setdefault(place if partition is None else partition, []).append(record)
                for place, records in where.items():
                    client.produce(place, records, codec=number)
                    sent += len(records)
        except Kafka2011Error as error:
            fail(f"{counted(sent, 'record')} sent to {topic}, then: {error}")
    note(f"{counted(sent, 'record')} sent to {topic}, acknowledged")


def _header(text: str) -> tuple[str, bytes]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise click.UsageError(f"{text!r} is no header; write NAME=VALUE")
    return name, os.fsencode(value)


def _split(line: bytes, delimiter: str | None) -> tuple[bytes | None, bytes]:
    if delimiter is None:
        return None, line
    key, found, value = line.partition(os.fsencode(delimiter))
    return (key, value) if found else (None, line)


def _batches(sources: Sequence[BinaryIO]) -> Iterator[list[bytes]]:
    """Lines without their ends, as many at a time as make a request."""
    for source in sources:
        lines: list[bytes] = []
        size = 0
        for line in source:
            lines.append(line.removesuffix(b"\n"))
            size += len(line)
            if len(lines) == BATCH or size > _BATCH_BYTES:
                yield lines
                lines, size = [], 0
        if lines:
            yield lines


_CODECS = click.Option(
    ["--codec"],
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    help="lz4 and zstd with -m only.",
)
_params = [_CODECS if option.name == "codec" else option for option in produce_2011.params]

produce = click.Command(
    "produce",
    callback=_invoke,
    params=[*_params, *_OPTIONS],
    help=f"""{produce_2011.help}

    \b
    echo 'member42:viewed profile 7' | kafka2011 produce clicks -m 127.0.0.1:9192 -K : -H source=web
    """,
    context_settings=produce_2011.context_settings,
)
