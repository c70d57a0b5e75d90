"""``kafka2011 sim standby``: the members of a broker with standbys in virtual time, and what changed rules lose."""

from __future__ import annotations

import click

from consumers.sim.standby.rules import MUTANTS, TODAY, name_of
from consumers.sim.standby.world import World, many, rules_called
from kafka2011.cli.output import CONTEXT, json_option, note, show


@click.command(context_settings=CONTEXT)
@click.option("--runs", default=200, show_default=True, type=click.IntRange(min=1), help="How many seeds.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--seed", type=int, help="One run, step by step.")
@click.option("--rule", type=click.Choice([name_of(rules) for rules in MUTANTS]), help="Run with this rule changed.")
@json_option
def standby(runs: int, first_seed: int, seed: int | None, rule: str | None, as_json: bool) -> None:
    """Three members of a broker under crashes, pauses, cuts and replaced disks; exit code 1 if a promise is broken.

    \b
    kafka2011 sim standby --runs 1000
    kafka2011 sim standby --seed 2 --rule elect_any_member
    """
    rules = TODAY if rule is None else rules_called(rule)
    if seed is not None:
        world = World(seed, rules, lines=[])
        violation = world.run()
        click.echo("\n".join(world.lines or []))
        click.echo("every promise held" if violation is None else f"broken: {violation}")
        raise SystemExit(0 if violation is None else 1)
    acknowledged, broken = many(runs, first_seed, rules)
    for number, what in list(broken.items())[:10]:
        note(f"seed {number}: {what}")
    rows = [{"rule": name_of(rules), "runs": runs, "acknowledged": acknowledged, "broken": len(broken)}]
    show(rows, as_json=as_json)
    raise SystemExit(1 if broken else 0)
