"""``kafka2011``: one command, nouns then verbs.

Sub-commands are found through the entry-point group ``kafka2011.commands`` and imported only when used, so
``kafka2011 fetch`` does not wait for Spark. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 could not tell.
"""

from __future__ import annotations

import difflib
import os
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click

from kafka2011 import __version__
from kafka2011.cli.output import CommandGroup, fail
from kafka2011.client_security import declare
from kafka2011.errors import Kafka2011Error
from kafka2011.wire.walk import is_compiled

GROUP = "kafka2011.commands"


class PluginGroup(CommandGroup):
    """A click group whose commands are entry points, loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_plugins())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        plugin = _plugins().get(cmd_name)
        if plugin is None:
            return None
        try:
            command = plugin.load()
        except ModuleNotFoundError as error:
            return _unavailable(cmd_name, error)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a reader that closes the pipe early, as ``| head`` does, is a normal way to end."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            ctx.exit(0)


def _plugins() -> dict[str, EntryPoint]:
    return {plugin.name: plugin for plugin in entry_points(group=GROUP)}


def _unavailable(name: str, error: ModuleNotFoundError) -> click.Command:
    """A command that says which extra to install, in place of one whose packages are missing."""

    @click.command(name, help=f"Not installed: needs the Python package {error.name!r}.")
    def missing() -> None:
        raise click.ClickException(
            f"'{name}' needs the Python package {error.name!r}; install it with: pip install 'kafka2011[all]'"
        )

    return missing


@click.group(cls=PluginGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    __version__, prog_name="kafka2011", message=f"%(prog)s %(version)s ({'compiled' if is_compiled else 'pure Python'})"
)
@click.option("--client-config", type=click.Path(path_type=Path), help="File with client.* settings (TLS, login).")
@click.option("--client", "pairs", multiple=True, metavar="NAME=VALUE", help="One client.* setting; may be repeated.")
def kafka2011(client_config: Path | None, pairs: tuple[str, ...]) -> None:
    """The 2011 Kafka paper, running.

    \b
    kafka2011 demo                          a whole cluster with a page to look at
    kafka2011 broker start --log-dir data   one broker, no ZooKeeper
    echo hello | kafka2011 produce clicks   publish
    kafka2011 fetch clicks --offset begin   read back by offset
    """
    if client_config is not None or pairs:
        given = dict(pair.partition("=")[::2] for pair in pairs)
        declare(client_config, given)


def main() -> None:
    """Run the command; turn our own errors and the system's into one line and exit code 1."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - a closed stream is None, and stays open to the end
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    try:
        kafka2011(prog_name="kafka2011")
    except Kafka2011Error as error:
        fail(str(error), error.exit_code)
    except UnicodeEncodeError as error:
        fail(f"{error.object!r} is not UTF-8; names and settings are text", 2)
    except OSError as error:
        _drop_output()
        where = error.filename if error.filename is not None else "reading or writing"
        fail(f"{where}: {error.strerror or error}")


def _drop_output() -> None:
    """Forget what could not be written, so that Python does not try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
