"""What every sub-command prints with: tables for people, JSON for programs, notes on stderr.

Results go to stdout, everything else to stderr, so that a command can stand in a pipe.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

CONTEXT = {"help_option_names": ["-h", "--help"]}


def json_option(command: Command) -> Command:
    """Add ``--json``; the command receives ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def broker_option(command: Command) -> Command:
    """Add ``--broker host:port``; the command receives ``broker`` as a string."""
    return click.option(
        "-b", "--broker", default="127.0.0.1:9092", show_default=True, envvar="KAFKA2011_BROKER", metavar="HOST:PORT"
    )(command)


def zookeeper_option(command: Command) -> Command:
    """Add ``--zookeeper host:port[,…][/chroot]``; the command receives ``zookeeper``."""
    return click.option(
        "-z",
        "--zookeeper",
        default="127.0.0.1:2181",
        show_default=True,
        envvar="KAFKA2011_ZOOKEEPER",
        metavar="HOST:PORT[/CHROOT]",
        help="ZooKeeper connect string.",
    )(command)


def host_and_port(text: str, default_port: int = 9092) -> tuple[str, int]:
    """Read ``host:port``; a usage error names what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon:
        return text, default_port
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.UsageError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str = "nothing to show") -> None:
    """Print rows as an aligned table, or as JSON. Columns are the keys of the first row."""
    if as_json:
        click.echo(json.dumps([dict(row) for row in rows], indent=2, default=str))
        return
    if not rows:
        note(empty)
        return
    columns = list(rows[0])
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    numeric = [all(isinstance(row.get(c), (int, float)) or row.get(c) is None for row in rows) for c in columns]
    for line in [[column.upper().replace("_", " ") for column in columns], *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    text = str(value)
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def note(text: str) -> None:
    """Say something to the person, on stderr."""
    click.echo(text, err=True)


def fail(text: str, code: int = 1) -> NoReturn:
    """Say what went wrong on stderr and end with ``code``."""
    click.echo(f"kafka2011: {text}", err=True)
    sys.exit(code)
