"""``kafka2011 config``: what a broker would use, and where each value comes from."""

from __future__ import annotations

from pathlib import Path

import click

from kafka2011.broker.plugins import all_settings, broker_config
from kafka2011.cli.broker import config_option, given_settings, set_option
from kafka2011.cli.output import CONTEXT, CommandGroup, json_option, note, show
from kafka2011.config import sample as sample_file
from kafka2011.config import written


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def config() -> None:
    """Look at settings: values, origins, a sample file."""


@config.command("show", context_settings=CONTEXT)
@config_option
@set_option
@click.option("--changed", is_flag=True, help="Only what is not at its default.")
@json_option
def show_settings(file: Path | None, pairs: tuple[str, ...], changed: bool, as_json: bool) -> None:
    """Print every setting, its value and where it was set.

    \b
    kafka2011 config show
    kafka2011 config show --config server.properties --changed
    KAFKA2011_LOG_FLUSH_INTERVAL=1 kafka2011 config show --json
    """
    found = broker_config(file, given_settings(pairs, {}))
    for notice in found.notices:
        note(notice)
    rows = [
        {
            "name": name,
            "value": found[name] if as_json and not isinstance(found[name], Path) else written(found[name]),
            "unit": found.settings[name].unit,
            "origin": found.origin(name),
        }
        for name in found
        if not changed or found.origin(name) != "default"
    ]
    show(rows, as_json=as_json, empty="everything is at its default")


@config.command(context_settings=CONTEXT)
def sample() -> None:
    """Print a commented settings file with every setting at its default.

    \b
    kafka2011 config sample > server.properties
    kafka2011 broker start --config server.properties
    """
    click.echo(sample_file(all_settings()), nl=False)
