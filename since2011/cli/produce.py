"""``kafka2011 produce``: the 2011 command, and with ``--modern`` records with keys, headers and times.

The habits are kcat's: ``-K :`` splits lines into key and value, ``-H name=value`` adds a header to every record, ``-Z``
takes an empty value for none at all, which in a compacted topic deletes the key.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import click

from kafka2011.cli.output import check_topic, counted, fail, host_and_port, note
from kafka2011.cli.produce import produce as produce_2011
from kafka2011.errors import ConnectionFailed, Kafka2011Error
from since2011.client.connection import ModernConnection
from since2011.producer import Producer, RecordMetadata

_ONLY_2011 = ("zookeeper", "key_separator", "rate", "batch_size", "acks", "progress")

_OPTIONS = [
    click.Option(["-m", "--modern"], metavar="HOST:PORT[,…]", help="Write to the modern port: keys, headers, times."),
    click.Option(["-K", "--key-delimiter"], metavar="TEXT", help="With -m: lines are KEY TEXT VALUE."),
    click.Option(["-H", "--header", "headers"], multiple=True, metavar="NAME=VALUE", help="With -m: on every record."),
    click.Option(["-T", "--timestamp"], type=click.IntRange(min=0), metavar="MS", help="With -m: instead of now."),
    click.Option(
        ["-X", "--set", "settings"],
        multiple=True,
        metavar="NAME=VALUE",
        help="With -m: a producer's setting by Kafka's name: acks=1, linger.ms=50, enable.idempotence=false; "
        "with transactional.id all lines count together or not at all.",
    ),
    click.Option(["-Z", "--null"], is_flag=True, help="With -m: an empty value is none, which deletes a key."),
]


def _invoke(modern: str | None, **given: Any) -> None:
    extras = {name: given.pop(name) for name in ("key_delimiter", "headers", "timestamp", "null", "settings")}
    if modern is None:
        if any(value not in (None, (), False) for value in extras.values()):
            raise click.UsageError("-K, -H, -T, -X and -Z need --modern: a 2011 message has no key, headers or time")
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
    settings: Sequence[str],
) -> None:
    check_topic(topic)
    told = [_header(text) for text in headers]
    given = dict(_setting(text) for text in settings) | {"bootstrap.servers": modern}
    if codec != "none":
        given["compression.type"] = codec
    report = _Report()
    try:
        # Whoever names a wrong port wants to hear of it now, not after max.block.ms.
        _somebody([host_and_port(part, 9192) for part in modern.split(",")])
        with Producer(given) as producer:
            transactional = producer.config.transactional_id is not None
            producer.partitions_for(topic)  # makes the topic, even if nothing follows
            if transactional:
                producer.init_transactions()
                producer.begin_transaction()
            for line in _lines(files or (sys.stdin.buffer,)):
                key, value = _split(line, key_delimiter)
                producer.send(
                    topic,
                    None if null and not value else value,
                    key,
                    partition=partition,
                    timestamp=timestamp,
                    headers=told,
                    on_delivery=report,
                )
                if report.error is not None:
                    break
            producer.flush()
            if transactional and report.error is None:
                producer.commit_transaction()
            elif transactional:
                producer.abort_transaction()
        if report.error is not None:
            raise report.error
    except Kafka2011Error as error:
        fail(f"{counted(report.stored, 'record')} sent to {topic}, then: {error}")
    how = "committed" if transactional else "sent, not acknowledged" if producer.config.acks == 0 else "acknowledged"
    note(f"{counted(report.stored, 'record')} sent to {topic}, {how}")


class _Report:
    """What was stored, and the first thing that was not."""

    def __init__(self) -> None:
        self.stored = 0
        self.error: Exception | None = None

    def __call__(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        if error is None:
            self.stored += 1
        elif self.error is None:
            self.error = error


def _somebody(addresses: Sequence[tuple[str, int]]) -> None:
    """Raise what the last address said if none can be reached."""
    for number, address in enumerate(addresses, 1):
        try:
            ModernConnection(*address, client_id="kafka2011").close()
            return
        except ConnectionFailed:
            if number == len(addresses):
                raise


def _setting(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise click.UsageError(f"{text!r} is no setting; write NAME=VALUE, as in -X acks=1")
    return name, value


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


def _lines(sources: Sequence[BinaryIO]) -> Iterator[bytes]:
    """Lines without their ends."""
    for source in sources:
        for line in source:
            yield line.removesuffix(b"\n")


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
