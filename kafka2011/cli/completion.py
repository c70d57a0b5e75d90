"""``kafka2011 completion``: let the shell complete commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from kafka2011.cli.output import CONTEXT, fail, note

_HOMES = {
    "bash": "~/.local/share/bash-completion/completions/kafka2011",
    "zsh": "~/.zfunc/_kafka2011",
    "fish": "~/.config/fish/completions/kafka2011.fish",
}
_THEN = {
    "bash": "open a new shell (the package bash-completion must be installed)",
    "zsh": "put `fpath+=~/.zfunc; autoload -Uz compinit; compinit` into ~/.zshrc and open a new shell",
    "fish": "open a new shell",
}


@click.command(context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(list(_HOMES)), required=False)
@click.option("--install", is_flag=True, help="Write it where the shell looks for it.")
def completion(shell: str | None, install: bool) -> None:
    """Print or install the completion of commands and options for your shell.

    \b
    kafka2011 completion --install             for the shell in $SHELL
    kafka2011 completion bash > somewhere
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in _HOMES else None
    if kind is None:
        fail(f"the shell {shell!r} is not known; name one of {', '.join(_HOMES)}", 2)
    root = click.get_current_context().find_root().command
    source = kind(root, {}, "kafka2011", "_KAFKA2011_COMPLETE").source()
    if not install:
        click.echo(source)
        return
    target = Path(_HOMES[shell]).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(source)
    note(f"wrote {target}; now {_THEN[shell]}")
