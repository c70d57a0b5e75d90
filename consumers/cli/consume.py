"""``kafka2011 consume``: print messages, as a member of a group or by offset.

Paper: §3 (streams), §3.1 (by offset), §3.2 (groups).
"""

from __future__ import annotations

import logging
import signal
import sys
import uuid

import click

from consumers.admin import Groups
from consumers.algorithm1.assign import RULES
from consumers.algorithm1.consumer import Consumer
from consumers.algorithm1.editions import EDITIONS
from consumers.cli.consume_modern import Reading, consume_modern
from consumers.events import FetcherWaiting
from consumers.simple import SimpleConsumer
from kafka2011.cli.message_format import Render, choose_format
from kafka2011.cli.offset_choice import find_start
from kafka2011.cli.output import CONTEXT, PARTITION, broker_option, fail, host_and_port, note, zookeeper_option
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import WireError
from kafka2011.events import Entry, log_lines
from kafka2011.types import BrokerPartition
from kafka2011.wire import MessageAndOffset
from since2011.cli.record_format import choose_format as choose_record_format

_POLL_S = 0.1


@click.command(context_settings=CONTEXT)
@click.argument("topic", required=False)
@click.option("--topic", "topic_option", help="The same as the argument.")
@click.option("--whitelist", metavar="REGEX", help="Every topic whose name matches, also future ones.")
@click.option("--blacklist", metavar="REGEX", help="Every topic whose name does not match.")
@click.option("-g", "--group", help="Share the partitions with the others of this group. Default: a group of its own.")
@zookeeper_option
@click.option("--from-beginning", is_flag=True, help="Begin at the smallest offset, not where the group left.")
@click.option("-o", "--offset", metavar="WHERE", help="By offset, without a group: begin, end, a number, -N, @TIME.")
@broker_option
@click.option("-p", "--partition", default=0, show_default=True, type=PARTITION, help="With --offset: on that broker.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Stop after so many messages.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), metavar="SECONDS",
              help="Stop after so long without a message.")
@click.option(
    "--edition", type=click.Choice(list(EDITIONS)), default="sound", show_default=True, help="Of Algorithm 1."
)
@click.option("--share", type=click.Choice(list(RULES)), help="The rule by which the group shares partitions, the same "
              "for all its members: as Kafka 0.7 does (the default), or exact fractions in numeric order.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="%t %p %o %n %s %x %S, and \\n \\t.")
@click.option("--json", "json_lines", is_flag=True, help="One JSON object per message.")
@click.option("-m", "--modern", metavar="HOST:PORT[,…]",
              help="Through today's protocol: alone, all of the topic or -p, or with --group as one of the group.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="With -m: print KEY TEXT VALUE.")
@click.option("--committed", is_flag=True, help="With -m: nothing of transactions that were aborted or are open.")
@click.option("-v", "--verbose", is_flag=True, help="Also say on stderr what happens: rebalances, claims, commits.")
def consume(
    topic: str | None,
    topic_option: str | None,
    whitelist: str | None,
    blacklist: str | None,
    group: str | None,
    zookeeper: str,
    from_beginning: bool,
    offset: str | None,
    broker: str,
    partition: int,
    count: int | None,
    timeout_s: float | None,
    edition: str,
    share: str | None,
    template: str | None,
    json_lines: bool,
    modern: str | None,
    key_delimiter: str | None,
    committed: bool,
    verbose: bool,
) -> None:
    """Print messages, for ever. Ctrl-C stores how far it got and leaves the group.

    \b
    kafka2011 consume clicks --group billing                 share clicks with others of the group
    kafka2011 consume clicks --from-beginning -n 10          the first ten, in a group of its own
    kafka2011 consume --whitelist 'audit.*' --group watch -v
    kafka2011 consume clicks --offset -5 --timeout 1         by offset from one broker: the last five
    kafka2011 consume clicks -m 127.0.0.1:9192 -o @1700000000000 -f '%k %T %h %s\\n'
    kafka2011 consume clicks -m 127.0.0.1:9192 -g billing    share clicks with any other client of the group
    """
    topic = topic or topic_option
    if sum(choice is not None for choice in (topic, whitelist, blacklist)) != 1:
        raise click.UsageError("name one topic, or one --whitelist, or one --blacklist")
    if modern is None and (key_delimiter is not None or committed):
        raise click.UsageError("-K and --committed need --modern: 2011 has no keys and no transactions")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if modern is not None:
        if topic is None:
            raise click.UsageError("--modern reads one topic")
        given = click.get_current_context().get_parameter_source("partition")
        one = partition if given is click.core.ParameterSource.COMMANDLINE else None
        if group is not None and (one is not None or offset is not None):
            raise click.UsageError("a group shares the partitions and keeps the offsets: no -p and no -o with --group")
        show = choose_record_format(template, json_lines, key_delimiter)
        where = offset or ("begin" if from_beginning or group else "end")
        consume_modern(modern, Reading(topic, one, where, count, timeout_s, committed, group), show)
        return
    render = choose_format(template, json_lines)
    if offset is not None:
        if topic is None:
            raise click.UsageError("--offset reads one topic; a filter needs a group")
        out = Output(render, count)
        _by_offset(topic, partition, offset, broker, timeout_s, out)
        note(f"{out.n_messages} messages of {topic}-{partition}")
        return
    name = group or f"console-consumer-{uuid.uuid4().hex[:8]}"
    reset = "smallest" if from_beginning or group else "largest"
    if from_beginning and group:
        _forget(zookeeper, group)
    out = Output(render, count)
    with Consumer(zookeeper, name, edition=edition, share=share, reset=reset, timeout_s=timeout_s) as consumer:
        if verbose:
            logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
            log_lines(consumer.journal)
        else:
            consumer.journal.subscribe(_tell_of_waiting)
        try:
            if topic is not None:
                stream = consumer.create_message_streams(topic)[0]
            else:
                stream = consumer.create_message_streams_by_filter(whitelist=whitelist, blacklist=blacklist)[0]
            for message in stream:
                if not out.write(message.topic, message.partition, message):
                    break
            consumer.commit()
        except KeyboardInterrupt:
            note("")
    if group is None:
        with Groups(zookeeper) as groups:
            groups.remove(name)
    note(f"{out.n_messages} messages" + (f" by group {group}" if group else ""))


class Output:
    """Writes messages to stdout until there are enough."""

    def __init__(self, render: Render, count: int | None) -> None:
        self._render, self._count = render, count
        self.n_messages = 0

    def write(self, topic: str, partition: int | BrokerPartition, message: MessageAndOffset) -> bool:
        """Print one; False if it was the last one wanted."""
        sys.stdout.buffer.write(self._render(topic, partition, message))
        sys.stdout.buffer.flush()
        self.n_messages += 1
        return self.n_messages != self._count


def _tell_of_waiting(entry: Entry) -> None:
    """Say why nothing comes: a broker that does not let us in is waited for, like one that is away."""
    if isinstance(entry.event, FetcherWaiting):
        note(f"waiting for {entry.event.broker}: {entry.event.reason}")


def _by_offset(topic: str, partition: int, where: str, broker: str, timeout_s: float | None, out: Output) -> None:
    host, port = host_and_port(broker)
    with BrokerConnection(host, port) as connection:
        at = find_start(connection, topic, partition, where, 1 << 20)
    last = SYSTEM_CLOCK.monotonic()
    offset, skip = at.offset, at.skip
    with SimpleConsumer(host, port) as consumer:
        try:
            while timeout_s is None or SYSTEM_CLOCK.monotonic() - last < timeout_s:
                for message in consumer.messages(topic, partition, offset, follow=False):
                    offset, last = message.next_offset, SYSTEM_CLOCK.monotonic()
                    if skip:
                        skip -= 1
                    elif not out.write(topic, partition, message):
                        return
                SYSTEM_CLOCK.sleep(_POLL_S)
        except KeyboardInterrupt:
            note("")
        except WireError as error:
            hint = "--format '%o' shows offsets; `kafka2011 log verify` on the broker looks for damage"
            raise type(error)(f"{error}; {hint}") from error


def _forget(zookeeper: str, group: str) -> None:
    """Begin anew: the group's stored offsets go, if nobody is using them."""
    with Groups(zookeeper) as groups:
        members = groups.members(group)
        if members:
            fail(f"group {group} has members ({', '.join(members)}); --from-beginning would move them too")
        groups.reset(group)
