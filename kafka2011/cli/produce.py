"""``kafka2011 produce``: lines to messages.

Paper: §3 (producer), §5 (batches, no acknowledgement).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import click

from kafka2011.cli.output import CONTEXT, PARTITION, check_topic, counted, fail, note
from kafka2011.client import BrokerConnection
from kafka2011.errors import (
    AnswerLost,
    CannotConnect,
    InvalidMessageSize,
    MessageTooLarge,
    OffsetOutOfRange,
    PortSpeaksTls,
)
from kafka2011.events import Entry, Journal
from kafka2011.producer import Codec, Producer, Router, StaticRouter, parse_brokers
from kafka2011.producer.events import BrokerUnreachable
from kafka2011.producer.routing import zookeeper_router
from kafka2011.producer.transmit import Acks
from kafka2011.types import BrokerAddress

MAX_MESSAGE_SIZE = 1_000_000
_CHUNK = 1 << 16
_PROGRESS_S = 1.0
_MOST_REASONS = 20


@click.command(context_settings=CONTEXT)
@click.argument("topic")
@click.option(
    "-b",
    "--broker",
    default="127.0.0.1:9092",
    show_default=True,
    envvar="KAFKA2011_BROKER",
    metavar="HOST:PORT[,…]",
    help="One broker or several; each batch goes to one of them.",
)
@click.option("-z", "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="Find brokers and partitions in ZooKeeper.")
@click.option("-p", "--partition", type=PARTITION, help="This partition (default: the broker picks).")
@click.option("--file", "files", type=click.File("rb"), multiple=True, help="Read lines from files, not from stdin.")
@click.option("-k", "--key-separator", metavar="TEXT", help="Lines are KEY TEXT MESSAGE; the key picks the partition.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N messages a second.")
@click.option("--batch-size", default=200, show_default=True, type=click.IntRange(min=1), help="Messages per request.")
@click.option("--codec", default="none", show_default=True, type=click.Choice(["none", "gzip", "snappy"]))
@click.option(
    "--acks",
    default="none",
    show_default=True,
    type=click.Choice(["none", "appended", "flushed", "all"]),
    help="Wait for the broker's word; not in 2011.",
)
@click.option("--progress/--no-progress", default=None, help="Count on stderr while sending (default: on a terminal).")
def produce(
    topic: str,
    broker: str,
    zookeeper: str | None,
    partition: int | None,
    files: tuple[BinaryIO, ...],
    key_separator: str | None,
    rate: float | None,
    batch_size: int,
    codec: str,
    acks: Acks,
    progress: bool | None,
) -> None:
    """Publish each line as a message (§3). Without --acks nobody confirms anything (§5).

    \b
    echo hello | kafka2011 produce clicks
    kafka2011 produce clicks --file access.log --codec gzip --rate 1000
    kafka2011 produce clicks -z 127.0.0.1:2181 -k : <<< 'member42:viewed profile 7'
    """
    if key_separator is not None and zookeeper is None:
        raise click.UsageError("--key-separator needs --zookeeper: a broker list does not know the partitions")
    if partition is not None and zookeeper is not None:
        raise click.UsageError("--partition is for --broker; with --zookeeper a key picks the partition")
    check_topic(topic)
    if partition is not None:
        _check_partition(topic, partition, parse_brokers(broker))
    router = _router(broker, zookeeper, partition)
    if partition is None and acks == "none":
        _check_ports(topic, router)
    report = _Progress(sys.stderr.isatty() if progress is None else progress)
    drops, journal = _Drops(), Journal()
    journal.subscribe(_Patience())
    producer = Producer(
        router,
        batch_size=batch_size,
        codec=Codec[codec.upper()],
        acks=acks,
        max_message_size=MAX_MESSAGE_SIZE,
        on_drop=drops,
        journal=journal,
    )
    interrupted = False
    with producer:
        try:
            for source in files or (sys.stdin.buffer,):
                for lines in _paced(_lines(source, source.name if files else "standard input"), rate):
                    if key_separator is None:
                        producer.send(topic, lines)
                    else:
                        _send_keyed(producer, topic, lines, os.fsencode(key_separator))
                    report(len(lines))
        except KeyboardInterrupt:
            interrupted = True
    sent, requests, dropped = producer.counters.sent, producer.counters.requests, producer.counters.dropped
    note(f"{counted(sent, 'message')} sent to {topic} in {counted(requests, 'request')}, {dropped} dropped")
    if dropped:
        fail(f"{dropped} of {counted(producer.counters.accepted, 'message')} not delivered: {drops.last}")
    if interrupted:
        fail("interrupted before the end of the input")


class _Drops:
    """What could not be delivered: each reason is told once, however many batches meet it."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self.last = "the reason is not known"

    def __call__(self, topic: str, n_messages: int, reason: str) -> None:
        self.last = reason
        if reason not in self._told and len(self._told) < _MOST_REASONS:
            self._told.add(reason)
            note(f"dropped {counted(n_messages, 'message')} of {topic}: {reason}")


class _Patience:
    """Says once for each broker that it is away and that sending is tried again: nobody waits without a word."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, BrokerUnreachable) and event.broker not in self._told:
            self._told.add(event.broker)
            note(f"{event.broker} cannot be reached; trying again for some seconds")


def _check_partition(topic: str, partition: int, brokers: Sequence[BrokerAddress]) -> None:
    """Ask before sending: nobody answers a produce, and a message for a partition that is not there is thrown away."""
    for address in brokers:
        with BrokerConnection(address.host, address.port) as connection, suppress(OffsetOutOfRange):
            connection.fetch(topic, partition, 0, 0)


def _check_ports(topic: str, router: Router) -> None:
    """Ask before sending: a port that speaks something else (TLS) takes the bytes too, and nobody would notice."""
    for broker_id in sorted({candidate.broker_id for candidate in router.partitions(topic)}):
        address = router.address(broker_id)
        with BrokerConnection(address.host, address.port, connect_timeout_s=1.0) as connection:
            try:
                connection.offsets(topic, 0)
            except CannotConnect:
                continue  # another one may be there; the producer says so if none is
            except (AnswerLost, InvalidMessageSize, PortSpeaksTls) as error:
                router.close()
                fail(
                    f"{address} does not answer as a 2011 port: {error}; nothing was sent. "
                    "If it speaks TLS, declare it: kafka2011 --client client.tls.ca=FILE produce …"
                )


def _router(brokers: str, zookeeper: str | None, partition: int | None) -> Router:
    if zookeeper is None:
        return StaticRouter(parse_brokers(brokers), (-1,) if partition is None else (partition,))
    return zookeeper_router(zookeeper)


def _send_keyed(producer: Producer, topic: str, lines: list[bytes], separator: bytes) -> None:
    for line in lines:
        key, found, payload = line.partition(separator)
        if not found:
            raise click.UsageError(f"no {separator.decode()!r} in the line {line[:60]!r}")
        producer.send(topic, payload, key=key)


def _lines(source: BinaryIO, name: str) -> Iterator[list[bytes]]:
    """Lines without their ends, as many at a time as there are to read now; none longer than a message may be."""
    rest = b""
    number = 0
    while chunk := os.read(source.fileno(), _CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        # A read is shorter than a message may be, so only a line that began before it can be too long.
        if len(lines[0] if lines else rest) > MAX_MESSAGE_SIZE:
            raise MessageTooLarge(
                f"line {number + 1} of {name} is longer than max.message.size = {MAX_MESSAGE_SIZE} bytes; "
                "the lines before it were sent, it and the rest were not"
            )
        number += len(lines)
        if lines:
            yield lines
    if rest:
        yield [rest]


def _paced(chunks: Iterator[list[bytes]], rate: float | None) -> Iterator[list[bytes]]:
    if rate is None:
        yield from chunks
        return
    started, sent = time.monotonic(), 0
    step = max(int(rate / 20), 1)
    for chunk in chunks:
        for start in range(0, len(chunk), step):
            some = chunk[start : start + step]
            time.sleep(max(started + sent / rate - time.monotonic(), 0))
            yield some
            sent += len(some)


class _Progress:
    """A count on stderr, once a second."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._sent = 0
        self._next = time.monotonic() + _PROGRESS_S

    def __call__(self, n_messages: int) -> None:
        self._sent += n_messages
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_S
            note(f"{self._sent} messages so far")
