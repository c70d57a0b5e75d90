"""``kafka2011 figures``: the pictures of the paper's ideas, drawn from live runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import click

from kafka2011.cli.output import CONTEXT, fail, note
from kafka2011.errors import Kafka2011Error


@cache
def _run() -> object:
    from classroom.figures.run import live_run

    return live_run(note)


def _of_run(name: str) -> Callable[[], str]:
    def draw() -> str:
        from classroom.figures import pictures

        drawn: str = getattr(pictures, name)(_run())
        return drawn

    return draw


def _of_module(name: str) -> Callable[[], str]:
    def draw() -> str:
        from importlib import import_module

        drawn: str = import_module(f"classroom.figures.{name}").draw()
        return drawn

    return draw


FIGURES: dict[str, Callable[[], str]] = {
    "system": _of_run("system"),
    "log": _of_module("log"),
    "copies": _of_module("copies"),
    "ownership": _of_run("ownership"),
    "generations": _of_run("generations"),
    "offsets": _of_run("offsets"),
    "sequence": _of_module("sequence"),
}


@click.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, type=click.Choice(list(FIGURES)))
@click.option(
    "-o", "--out", default="figures", show_default=True, type=click.Path(path_type=Path), help="Where to write them."
)
def figures(names: tuple[str, ...], out: Path) -> None:
    """Draw the ideas of the paper as SVG, for slides: each from something that runs while you wait.

    \b
    kafka2011 figures                    all seven, in about two minutes
    kafka2011 figures log sequence       these two
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        for name in names or FIGURES:
            note(f"{name}: running …")
            path = out / f"{name}.svg"
            path.write_text(FIGURES[name]())
            note(f"{name}: {path}")
    except Kafka2011Error as error:
        fail(str(error))
