"""What every sub-command prints with: tables for people, JSON for programs, notes on stderr.

Results go to stdout, everything else to stderr, so that a command can stand in a pipe.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NoReturn, TypeVar

import click

from kafka2011.errors import IllegalTopicName
from kafka2011.types import is_legal_name

Command = TypeVar("Command", bound=Callable[..., Any])

CONTEXT = {"help_option_names": ["-h", "--help"]}
PARTITION = click.IntRange(0, (1 << 31) - 1)
"""What a partition number on the wire can be."""
_AT_A_TIME = 1000
_WHOLE_SENTENCE = 400


class CommandGroup(click.Group):
    """A group of commands whose help shows whole sentences: click cuts each to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=_WHOLE_SENTENCE)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


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
    """Read ``host``, ``host:port`` or ``[::1]:port``; a usage error names what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default_port)
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise click.UsageError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def admin_url(text: str, path: str) -> tuple[str, int]:
    """The address of a page of a broker's admin HTTP, and its port."""
    host, port = host_and_port(text, 8011)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}", port


def check_topic(topic: str) -> str:
    """The name, if a broker can have such a topic; a broker asked for another one only hangs up."""
    if not is_legal_name(topic, 255):
        raise IllegalTopicName(f"{topic[:60]!r} cannot be a topic: use letters, digits, dots, dashes and underscores")
    return topic


def counted(n: int, noun: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def show(rows: Iterable[Mapping[str, Any]], *, as_json: bool, empty: str = "nothing to show") -> None:
    """Print rows as an aligned table, or as JSON. Columns are the keys of the first row.

    Rows may be many: they are printed as they come, some at a time.
    """
    left = iter(rows)
    some = list(islice(left, _AT_A_TIME))
    if as_json:
        _show_json(chain(some, left))
    elif not some:
        note(empty)
    else:
        _show_table(some, left)


def _show_json(rows: Iterable[Mapping[str, Any]]) -> None:
    before = "["
    for row in rows:
        text = json.dumps(dict(row), indent=2, default=str)
        click.echo(before + "\n  " + text.replace("\n", "\n  "), nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


def _show_table(some: list[Mapping[str, Any]], left: Iterator[Mapping[str, Any]]) -> None:
    columns = list(some[0])
    numeric = [all(isinstance(row.get(c), (int, float)) or row.get(c) is None for row in some) for c in columns]
    widths = [len(column) for column in columns]
    lines = [[column.upper().replace("_", " ") for column in columns]]
    while some:
        lines += [[_cell(row.get(column)) for column in columns] for row in some]
        # Later rows may be wider than the first thousand; then the table widens from there on.
        widths = [max(width, *(len(line[i]) for line in lines)) for i, width in enumerate(widths)]
        text = (
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        )
        click.echo("\n".join(text))
        some, lines = list(islice(left, _AT_A_TIME)), []


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
