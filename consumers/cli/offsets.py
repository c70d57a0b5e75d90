"""``kafka2011 offsets``: a group's stored offsets to a file and back, in the format of 0.7's tools.

    /consumers/billing/offsets/clicks/0-0:12345

Paper: §3.2 (the offset registry is persistent).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

import click

from consumers.groups import zookeeper_groups
from kafka2011.cli.output import CONTEXT, fail, note, zookeeper_option
from kafka2011.types import BrokerPartition
from zk_registry import paths
from zk_registry.consumers import groups as all_groups
from zk_registry.offsets import OffsetRegistry

_LINE = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+)-(\d+):(\d{1,19})\Z")


@click.group(context_settings=CONTEXT)
def offsets() -> None:
    """Stored offsets as a file: export, import (§3.2)."""


@offsets.command("export", context_settings=CONTEXT)
@zookeeper_option
@click.option("--group", "names", multiple=True, help="Only this group; may be given again. Default: all.")
@click.option("-o", "--output", type=click.File("w"), default="-", help="Default: stdout.")
def export_offsets(zookeeper: str, names: tuple[str, ...], output: IO[str]) -> None:
    """Write every stored offset, one per line.

    \b
    kafka2011 offsets export --group billing > billing.offsets
    kafka2011 offsets export -o all.offsets
    """
    n_lines = 0
    with zookeeper_groups(zookeeper) as groups:
        for name in names or all_groups(groups.registry):
            stored = OffsetRegistry(groups.registry, name)
            for topic in stored.topics():
                for partition, offset in sorted(stored.read_all(topic).items()):
                    output.write(f"{paths.offset(name, topic, partition)}:{offset}\n")
                    n_lines += 1
    note(f"{n_lines} offsets exported")


@offsets.command("import", context_settings=CONTEXT)
@zookeeper_option
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_offsets(zookeeper: str, source: Path) -> None:
    """Store the offsets of a file; all lines are checked before the first is written.

    \b
    kafka2011 offsets import billing.offsets
    kafka2011 offsets import all.offsets -z 127.0.0.1:2181/kafka
    """
    wanted: dict[tuple[str, str], dict[BrokerPartition, int]] = {}
    n_lines = 0
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.match(line.strip())
        if found is None:
            fail(f"{source}, line {number}: {line[:80]!r} is not a stored offset; nothing was stored")
            return
        group, topic, broker, partition, offset = found.groups()
        wanted.setdefault((group, topic), {})[BrokerPartition(int(broker), int(partition))] = int(offset)
        n_lines += 1
    with zookeeper_groups(zookeeper) as groups:
        for group in sorted({group for group, _ in wanted}):
            if groups.members(group):
                fail(f"nothing was stored: group {group} has members, which would overwrite it; stop them first")
        for (group, topic), stored in wanted.items():
            OffsetRegistry(groups.registry, group).write(topic, stored)
    note(f"{n_lines} offsets imported")
