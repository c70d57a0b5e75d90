"""``kafka2011 sim transactions``: the transaction coordinator in virtual time, under crashes and zombies."""

from __future__ import annotations

import click

from consumers.sim.transactions.runs import many, one
from kafka2011.cli.output import CONTEXT, json_option, note, show


@click.command(context_settings=CONTEXT)
@click.option("--runs", default=200, show_default=True, type=click.IntRange(min=1), help="How many seeds.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--seed", type=int, help="One run, step by step.")
@click.option("--read-uncommitted", is_flag=True, help="The control: readers who see everything; it must fail.")
@json_option
def transactions(runs: int, first_seed: int, seed: int | None, read_uncommitted: bool, as_json: bool) -> None:
    """Coordinator, leaders, copying programs and their zombies; exit code 1 if a promise is broken.

    \b
    kafka2011 sim transactions --runs 1000
    kafka2011 sim transactions --seed 7
    kafka2011 sim transactions --read-uncommitted
    """
    committed = not read_uncommitted
    if seed is not None:
        lines: list[str] = []
        _, broken = one(seed, committed=committed, lines=lines)
        click.echo("\n".join(lines))
        click.echo("every promise held" if broken is None else f"broken: {broken}")
        raise SystemExit(0 if broken is None else 1)
    tally = many(runs, first_seed, committed=committed)
    row = tally._asdict() | {"broken": len(tally.broken)}
    show([row], as_json=as_json)
    for failing, what in list(tally.broken.items())[:10]:
        note(f"seed {failing}: {what}")
    raise SystemExit(1 if tally.broken else 0)
