"""``kafka2011 fetch``: read one partition by offset, without a group and without ZooKeeper.

Paper: §3.1 (a pull request: an offset and a number of bytes; the consumer computes the next offset itself).
"""

from __future__ import annotations

import select
import sys

import click

from kafka2011.cli.message_format import choose_format
from kafka2011.cli.offset_choice import Start, fetch_whole, find_start
from kafka2011.cli.output import CONTEXT, PARTITION, broker_option, counted, host_and_port, note
from kafka2011.client import BrokerConnection
from kafka2011.errors import InvalidMessage
from kafka2011.wire import MessageAndOffset, decode_set, readable_bytes, valid_bytes

MAX_BYTES = click.IntRange(1, 1 << 30)
_POLL_S = 0.1


@click.command(context_settings=CONTEXT)
@click.argument("topic")
@broker_option
@click.option("-p", "--partition", default=0, show_default=True, type=PARTITION, help="Partition on that broker.")
@click.option(
    "-o",
    "--offset",
    default="begin",
    show_default=True,
    metavar="WHERE",
    help="begin, end, a number, -N (the last N messages) or @TIME (ISO, or ms since 1970; to the segment).",
)
@click.option("-n", "--count", type=click.IntRange(min=0), help="Stop after so many messages.")
@click.option("-e", "--exit-at-end", is_flag=True, help="Stop at the end of the partition instead of waiting for more.")
@click.option("--max-bytes", default=1 << 20, show_default=True, type=MAX_BYTES, help="Bytes per fetch.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="%t %p %o %n %s %x %S, and \\n \\t.")
@click.option("--json", "json_lines", is_flag=True, help="One JSON object per message.")
def fetch(
    topic: str,
    broker: str,
    partition: int,
    offset: str,
    count: int | None,
    exit_at_end: bool,
    max_bytes: int,
    template: str | None,
    json_lines: bool,
) -> None:
    """Read a partition from an offset on (§3.1). Payloads go to stdout, one per line. Ctrl-C ends it.

    \b
    kafka2011 fetch clicks --offset begin -e            everything there is
    kafka2011 fetch clicks -o -5 -e                     the last five messages
    kafka2011 fetch clicks -o @2011-06-12T09:00 -n 10   from a time on
    kafka2011 fetch clicks -o 1024 -f '%o %s\\n'         offsets and payloads
    """
    render = choose_format(template, json_lines)
    host, port = host_and_port(broker)
    printed = 0
    with BrokerConnection(host, port) as connection:
        try:
            at = find_start(connection, topic, partition, offset, max_bytes)
            while count is None or printed < count:
                data, messages = _read(connection, topic, partition, at, max_bytes)
                if count is not None:
                    messages = messages[: count - printed]
                sys.stdout.buffer.write(b"".join([render(topic, partition, message) for message in messages]))
                sys.stdout.buffer.flush()
                printed += len(messages)
                at = Start(at.offset + valid_bytes(data))
                if not data and (exit_at_end or not _still_read(_POLL_S)):
                    break
        except KeyboardInterrupt:
            note("")
    note(f"{counted(printed, 'message')} of {topic}-{partition}")


def _still_read(seconds: float) -> bool:
    """Wait; False as soon as whoever reads our output has gone, which a write would tell only with the next message."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return not output.poll(1000 * seconds)


def _read(
    connection: BrokerConnection, topic: str, partition: int, at: Start, max_bytes: int
) -> tuple[bytes, list[MessageAndOffset]]:
    """The next bytes and the messages in them; of damaged bytes what is good before the damage."""
    data = fetch_whole(connection, topic, partition, at.offset, max_bytes)
    try:
        return data, decode_set(data, at.offset)[at.skip :]
    except InvalidMessage as error:
        # The next turn begins at the damage and says where it is.
        data = data[: readable_bytes(data)]
        if not data:
            raise InvalidMessage(
                f"the message at offset {at.offset} of {topic}-{partition} is damaged ({error}); "
                "look at it with `kafka2011 log verify` on the broker, or go on behind it with --offset"
            ) from error
        return data, decode_set(data, at.offset)[at.skip :]
