"""``kafka2011 offsets``: a group's stored offsets to a file and back, in the format of 0.7's tools.

    /consumers/billing/offsets/clicks/0-0:12345

Paper: §3.2 (the offset registry is persistent).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

import click

from consumers.admin import Groups
from consumers.group_protocol.coordinator.records import read_key, read_offset
from consumers.group_protocol.member.groups import ModernGroups, StoredOffsets
from consumers.group_protocol.old_offsets import read_old_offsets
from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show, zookeeper_option
from kafka2011.types import BrokerPartition
from zk_registry import paths

_LINE = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+)-(\d+):(\d{1,19})\Z")


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def offsets() -> None:
    """Stored offsets: to a file, from a file, and between the two kinds of group (§3.2).

    \b
    kafka2011 offsets export --group billing > billing.offsets
    kafka2011 offsets copy billing --to modern --execute
    """


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
    with Groups(zookeeper) as groups:
        for name in names or [row.group for row in groups.list()]:
            for topic, stored in groups.offsets(name).items():
                for partition, offset in stored.items():
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
    wanted: dict[str, dict[str, dict[BrokerPartition, int]]] = {}
    n_lines = 0
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.match(line.strip())
        if found is None:
            fail(f"{source}, line {number}: {line[:80]!r} is not a stored offset; nothing was stored")
        group, topic, broker, partition, offset = found.groups()
        at = BrokerPartition(int(broker), int(partition))
        wanted.setdefault(group, {}).setdefault(topic, {})[at] = int(offset)
        n_lines += 1
    with Groups(zookeeper) as groups:
        for group in wanted:
            if groups.members(group):
                fail(f"nothing was stored: group {group} has members, which would overwrite it; stop them first")
        for group, offsets_of_group in wanted.items():
            groups.store(group, offsets_of_group)
    note(f"{n_lines} offsets imported")


@offsets.command("adopt", context_settings=CONTEXT)
@zookeeper_option
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
def adopt_offsets(zookeeper: str, directory: Path) -> None:
    """Carry offsets that release 1.1 kept on a broker's disk (DIRECTORY: .modern/offsets) to their coordinators.

    A broker takes over those of its own groups when it starts. This is for the rest, in a cluster; offsets the groups
    have committed since stay as they are. DIRECTORY is not changed.

    \b
    kafka2011 offsets adopt data/.modern/offsets
    kafka2011 offsets adopt --zookeeper zk1:2181,zk2:2181 data/.modern/offsets
    """
    modern = ModernGroups.open({"zookeeper": zookeeper})
    if modern is None:
        fail("no broker has published a modern port; start brokers with modern.port")
    n_offsets = 0
    found = read_old_offsets(directory)
    try:
        for group, records in found.items():
            stored = {}
            for record in records:
                key = read_key(record.key)
                if key.partition is not None and record.value is not None:
                    committed = read_offset(record.value)
                    stored[key.partition] = (committed.offset, committed.metadata)
            n_offsets += modern.adopt(group, stored)
    finally:
        modern.close()
    note(f"{n_offsets} offsets of {len(found)} groups taken over")


@offsets.command("copy", context_settings=CONTEXT)
@zookeeper_option
@click.argument("group")
@click.option("--to", "target", type=click.Choice(["modern", "zookeeper"]), required=True, help="Where they shall be.")
@click.option("--execute", is_flag=True, help="Do it; without, only say what would be stored.")
@json_option
def copy_offsets(zookeeper: str, group: str, target: str, execute: bool, as_json: bool) -> None:
    """Carry a group's offsets from Algorithm 1 to the modern protocol, or back.

    An offset is the same number in both worlds: the byte position of the next message. Stop the group first.

    \b
    kafka2011 offsets copy billing --to modern
    kafka2011 offsets copy billing --to zookeeper --execute
    """
    modern = ModernGroups.open({"zookeeper": zookeeper})
    if modern is None:
        fail("no broker has published a modern port; start brokers with modern.port")
    try:
        with Groups(zookeeper) as groups:
            old: StoredOffsets = {topic: dict(stored) for topic, stored in groups.offsets(group).items()}
            new = modern.offsets(group)
            source, there = (old, new) if target == "modern" else (new, old)
            show(
                [
                    {"topic": topic, "partition": str(part), "now": there.get(topic, {}).get(part), "then": offset}
                    for topic, stored in sorted(source.items())
                    for part, offset in sorted(stored.items())
                ],
                as_json=as_json,
                empty=f"group {group} has no offsets to copy",
            )
            if not execute:
                note("nothing was stored; add --execute to do this")
                return
            if groups.members(group):
                fail(f"nothing was stored: group {group} has members in ZooKeeper; stop them first")
            if target == "modern":
                modern.store(group, source)
            else:
                groups.store(group, source)
    finally:
        modern.close()
    note(f"{sum(map(len, source.values()))} offsets stored")
