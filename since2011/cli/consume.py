"""``kafka2011 consume --modern``: print the records of a modern topic, without a group."""

from __future__ import annotations

import sys

import click

from kafka2011.cli.output import counted, fail, host_and_port, note
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from since2011.cli.record_format import Render
from since2011.client.records import EARLIEST, LATEST, RecordClient

_WAIT_MS = 200


def consume_modern(
    modern: str,
    topic: str,
    partition: int | None,
    where: str,
    count: int | None,
    timeout_s: float | None,
    committed: bool,
    render: Render,
) -> None:
    """Print from every partition, or one, until there are enough or nothing comes any more."""
    n_records = 0
    with RecordClient([host_and_port(part, 9192) for part in modern.split(",")], topic) as client:
        try:
            known = client.partitions(create=False)
            if partition is not None and partition not in known:
                fail(f"{topic} has no partition {partition}; it has {', '.join(map(str, known))}")
            places = {
                one: _start(client, one, where, committed) for one in (known if partition is None else [partition])
            }
            last = SYSTEM_CLOCK.monotonic()
            while timeout_s is None or SYSTEM_CLOCK.monotonic() - last < timeout_s:
                for one, offset in list(places.items()):
                    for record in client.fetch(one, offset, wait_ms=_WAIT_MS // len(places), committed=committed):
                        sys.stdout.buffer.write(render(topic, one, record))
                        places[one] = record.offset + 1
                        n_records += 1
                        last = SYSTEM_CLOCK.monotonic()
                        if n_records == count:
                            break
                    sys.stdout.buffer.flush()
                    if n_records == count:
                        note(f"{counted(n_records, 'record')} of {topic}")
                        return
        except KeyboardInterrupt:
            note("")
        except Kafka2011Error as error:
            fail(f"{counted(n_records, 'record')} of {topic}, then: {error}")
    note(f"{counted(n_records, 'record')} of {topic}")


def _start(client: RecordClient, partition: int, where: str, committed: bool) -> int:
    """``begin``, ``end``, an offset, ``-N`` before the end, ``@MS``: the first record stamped then or later."""
    end = client.offset(partition, LATEST, committed=committed)
    if where in ("begin", "beginning", "smallest"):
        return client.offset(partition, EARLIEST)
    if where in ("end", "largest"):
        return end
    try:
        if where.startswith("@"):
            found = client.offset(partition, int(where[1:]), committed=committed)
            return end if found < 0 else found
        number = int(where)
    except ValueError:
        raise click.UsageError(f"{where!r}: begin, end, an offset, -N or @MILLISECONDS") from None
    return number if number >= 0 else max(client.offset(partition, EARLIEST), end + number)
