"""``kafka2011 log``: look into segment files, check them, and get messages out of damaged ones.

Paper: §3.1 (segment files), §3.3 (CRC).
"""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import click

from kafka2011.cli.output import CONTEXT, CommandGroup, admin_url, counted, fail, json_option, note, show
from kafka2011.cli.topics import source_options
from kafka2011.errors import WireError
from kafka2011.log.dump import Damage, DumpedEntry, read_segment, segment_files
from kafka2011.log.notes import accept_missing
from kafka2011.wire.message import Codec

_PREVIEW = 48
FORMATS = "kafka2011.log_formats"
_path = click.argument("path", type=click.Path(exists=True, path_type=Path))


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def log() -> None:
    """Look into the files of a partition."""


@log.command(context_settings=CONTEXT)
@_path
@click.option(
    "--offset",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Begin at this offset; it must be a message's own.",
)
@click.option("-n", "--max", "most", type=click.IntRange(min=1), help="Show at most so many entries.")
@click.option("--hex", "as_hex", is_flag=True, help="Show every entry as a hex dump.")
@click.option("--deep", is_flag=True, help="Open compressed wrappers and show the messages inside.")
@click.option("--offsets-decoder", "offsets", is_flag=True, help="Newer logs: records are groups and their offsets.")
@json_option
def dump(
    path: Path, offset: int, most: int | None, as_hex: bool, deep: bool, offsets: bool, as_json: bool
) -> None:
    """Show the entries of a segment file or of a partition's directory.

    \b
    kafka2011 log dump data/clicks-0
    kafka2011 log dump data/clicks-0/00000000000000000000.kafka -n 10 --hex
    kafka2011 log dump data/clicks-0 --deep --json

    Files of a newer kind of log (.log, .index, .timeindex, .txnindex, .snapshot, checkpoints) are shown too; there
    --deep opens batches and shows their records; those of __consumer_offsets in words.
    """
    newer = _format_of(path)
    if newer is not None:
        show(islice(newer.rows(path, offset, deep=deep, offsets=offsets), most), as_json=as_json, empty="no entries")
        return
    found = islice(_entries(path, offset), most)
    if as_hex:
        for entry in found:
            click.echo(_title(entry))
            if isinstance(entry, DumpedEntry):
                _hex(entry.offset, entry.data)
        return
    show((row for entry in found for row in _rows(entry, deep)), as_json=as_json, empty="no entries")


@log.command(context_settings=CONTEXT)
@_path
@json_option
def verify(path: Path, as_json: bool) -> None:
    """Check every CRC (wrappers opened) and that segments follow each other without a gap.

    Exit code 0: intact. 1: damage, or an unfinished write at the end.

    \b
    kafka2011 log verify data/clicks-0
    kafka2011 log verify data/clicks-0/00000000000000000000.kafka --json
    """
    rows: list[dict[str, Any]] = []
    bad = False
    expected: int | None = None
    for start, file in segment_files(path):
        n_entries = n_messages = damaged = 0
        verdict = "intact"
        if expected is not None and expected != start:
            verdict = f"gap: the segment before it ends at {expected}"
        for entry in read_segment(start, file):
            if isinstance(entry, Damage):
                damaged += entry.size
                where = "unfinished write at" if entry.tail else "damage at"
                verdict = f"{where} {entry.offset}, {entry.size} bytes" if verdict == "intact" else verdict
                continue
            n_entries += 1
            try:
                n_messages += 1 if entry.codec is Codec.NONE else len(entry.messages())
            except WireError as error:
                damaged += entry.size
                verdict = f"wrapper at {entry.offset}: {error}" if verdict == "intact" else verdict
        bad = bad or verdict != "intact"
        expected = start + file.stat().st_size
        rows.append(
            {
                "segment": file.name,
                "start": start,
                "size": file.stat().st_size,
                "entries": n_entries,
                "messages": n_messages,
                "damaged_bytes": damaged,
                "verdict": verdict,
            }
        )
    show(rows, as_json=as_json)
    if bad:
        fail("not intact; `kafka2011 log salvage` gets the messages out")


@log.command(context_settings=CONTEXT)
@_path
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Where to write; '-' is standard output."
)
@click.option("--lines", is_flag=True, help="Write payloads as lines, ready for `kafka2011 produce`, not a set.")
def salvage(path: Path, out: Path, lines: bool) -> None:
    """Write every intact message to a file, and name every stretch that was skipped.

    Nothing is changed in PATH. The result is a message set (`kafka2011 log dump` reads it), or lines.

    \b
    kafka2011 log salvage data/clicks-0/00000000000000000000.kafka.corrupt -o clicks.set
    kafka2011 log salvage data/clicks-0 --lines -o - | kafka2011 produce clicks-again
    """
    target, directory = out.resolve(), (path if path.is_dir() else path.parent).resolve()
    if target == path.resolve() or (".kafka" in target.name and target.parent == directory):
        raise click.UsageError(f"{out} is, or looks like, one of the files to be saved; write somewhere else")
    n_messages = n_broken = skipped = 0
    with nullcontext(sys.stdout.buffer) if out == Path("-") else open(out, "wb") as file:
        for entry in _entries(path, 0):
            if isinstance(entry, Damage):
                skipped += entry.size
                note(_title(entry))
                continue
            try:
                payloads = entry.messages()
            except WireError as error:
                skipped += entry.size
                note(f"{entry.path.name}: wrapper at {entry.offset} skipped: {error}")
                continue
            n_messages += len(payloads)
            n_broken += sum(b"\n" in payload for payload in payloads)
            file.write(b"".join(payload + b"\n" for payload in payloads) if lines else entry.data)
        file.flush()
    note(f"{counted(n_messages, 'message')} written, {skipped} bytes skipped")
    if lines and n_broken:
        note(f"{counted(n_broken, 'message')} with line breaks became several lines; without --lines they stay whole")
    if skipped and not n_messages:
        sys.exit(1)


@log.command(context_settings=CONTEXT)
@_path
@click.option("--explain", is_flag=True, required=True, help="Show what would happen; nothing is changed.")
@json_option
def clean(path: Path, explain: bool, as_json: bool) -> None:
    """Explain compaction (newer logs): of every key, which records would stay and which would go, and why.

    The broker cleans by itself; this asks its cleaner about a copy of the partition's directory.

    \b
    kafka2011 log clean data/.modern/logs/prices-0 --explain
    kafka2011 log clean data/.modern/logs/prices-0 --explain --json
    """
    newer = _format_of(path)
    if newer is None or not path.is_dir():
        fail(f"{path} is not the directory of a partition with keys; 2011 messages have none")
    show(newer.explain_cleaning(path), as_json=as_json, empty="no records")


@log.command(context_settings=CONTEXT)
@source_options
def accept(admin: str | None, log_dir: Path | None) -> None:
    """Say that you know which files are missing or damaged, so that they are not told of any more.

    A broker names files of a log that somebody deleted, until they are put back or this is said. With --log-dir (no
    broker may run there) a partition whose whole directory was deleted is forgotten too: that deletes a topic; and a
    modern partition that takes no appends because of damage takes them again.

    \b
    kafka2011 log accept --admin 127.0.0.1:8011
    kafka2011 log accept --log-dir data
    """
    if (admin is None) == (log_dir is None):
        raise click.UsageError("say where: --admin HOST:PORT of a running broker, or --log-dir DIRECTORY")
    for line in _accept_in(log_dir) if log_dir is not None else _accept_at(str(admin)):
        click.echo(f"accepted: {line}")


def _accept_in(directory: Path) -> list[str]:
    newer = [line for plugin in entry_points(group=FORMATS) for line in plugin.load().accept(directory)]
    return [*accept_missing(directory), *newer]


def _accept_at(admin: str) -> list[str]:
    url, _ = admin_url(admin, "/accept-missing")
    request = urllib.request.Request(url, method="POST", headers={"X-Kafka2011": "accept"})  # noqa: S310 - http://
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - http://
            return [str(line) for line in json.load(reply)]
    except urllib.error.HTTPError as error:
        fail(f"{url} answered {error.code}: {error.read().decode(errors='replace').strip()}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        fail(f"no broker answers at {url} ({getattr(error, 'reason', None) or error})")


class LogFormat(Protocol):
    """A kind of log newer than 2011, from the entry-point group ``FORMATS``."""

    def claims(self, path: Path) -> bool:
        """Whether ``path`` is of this kind."""

    def rows(self, path: Path, offset: int, *, deep: bool, offsets: bool) -> Iterator[dict[str, Any]]:
        """What ``dump`` shows."""

    def explain_cleaning(self, path: Path) -> Iterator[dict[str, Any]]:
        """What ``clean --explain`` shows."""

    def accept(self, path: Path) -> list[str]:
        """Accept what is damaged below a data directory; what it was."""


def _format_of(path: Path) -> LogFormat | None:
    for plugin in entry_points(group=FORMATS):
        found: LogFormat = plugin.load()
        if found.claims(path):
            return found
    return None


def _entries(path: Path, offset: int) -> Iterator[DumpedEntry | Damage]:
    for start, file in segment_files(path):
        if offset < start + max(1, file.stat().st_size):
            yield from read_segment(start, file, offset)


def _rows(entry: DumpedEntry | Damage, deep: bool) -> list[dict[str, Any]]:
    row: dict[str, Any] = {"offset": entry.offset, "size": entry.size, "magic": None, "codec": None, "crc": None}
    if isinstance(entry, Damage):
        what = "unfinished write" if entry.tail else "damaged bytes"
        return [row | {"crc_ok": False, "payload_size": None, "payload": what}]
    row |= {"magic": entry.magic, "codec": entry.codec.name.lower(), "crc": f"{entry.crc:08x}", "crc_ok": True}
    if not deep or entry.codec is Codec.NONE:
        return [row | {"payload_size": len(entry.payload), "payload": _preview(entry.payload)}]
    try:
        inner = entry.messages()
    except WireError as error:
        return [row | {"crc_ok": False, "payload_size": len(entry.payload), "payload": str(error)}]
    return [row | {"payload_size": len(payload), "payload": _preview(payload)} for payload in inner]


def _preview(payload: bytes) -> str:
    text = payload[:_PREVIEW].decode("utf-8", "backslashreplace")
    return text + ("…" if len(payload) > _PREVIEW else "")


def _title(entry: DumpedEntry | Damage) -> str:
    if isinstance(entry, Damage):
        what = "unfinished write" if entry.tail else "damage"
        return f"{entry.path.name}: {what} at offset {entry.offset}, {entry.size} bytes"
    codec = entry.codec.name.lower()
    return f"offset {entry.offset}  size {entry.size}  magic {entry.magic}  codec {codec}  crc {entry.crc:08x} ok"


def _hex(offset: int, data: bytes) -> None:
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in part)
        click.echo(f"  {offset + at:012d}  {part.hex(' '):47}  {text}")
