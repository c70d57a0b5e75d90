"""``kafka2011 sim``: Algorithm 1 in virtual time, thousands of runs, every one replayable by its seed.

Paper: §3.2, Algorithm 1.
"""

from __future__ import annotations

from pathlib import Path

import click

from consumers.algorithm1.editions import EDITIONS
from consumers.cli.sim_replication import replication
from consumers.cli.sim_standby import standby
from consumers.cli.sim_transactions import transactions
from consumers.sim.picture import draw
from consumers.sim.runs import KINDS, compare, first_failure, mixed, scenario, shrink
from consumers.sim.scenario import Scenario
from consumers.sim.world import World
from kafka2011.cli.output import CONTEXT, CommandGroup, json_option, note, show

_edition = click.option(
    "--edition",
    type=click.Choice([*EDITIONS, "mixed"]),
    default="sound",
    show_default=True,
    help="mixed: members of sound, of shipped and of a model of Kafka 0.7 in one group.",
)
_kind = click.option(
    "--kind", type=click.Choice(list(KINDS)), default="faults", show_default=True, help="What goes wrong."
)
_seed = click.option("--seed", type=int, default=0, show_default=True)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def sim() -> None:
    """The real rebalance and replication code in a simulated world (§3.2, §3.3)."""


sim.add_command(replication)
sim.add_command(transactions)
sim.add_command(standby)


@sim.command(context_settings=CONTEXT)
@_seed
@_edition
@_kind
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw who read what, when.")
def run(seed: int, edition: str, kind: str, svg: Path | None) -> None:
    """One run and its verdict; exit code 1 if something went wrong.

    \b
    kafka2011 sim run --seed 7
    kafka2011 sim run --seed 7 --edition printed --svg lanes.svg
    """
    world = World(scenario(seed, edition, kind))
    verdict = world.run()
    click.echo(str(verdict))
    if svg is not None:
        svg.write_text(draw(world.scenario, verdict))
        note(f"picture: {svg}")
    raise SystemExit(1 if verdict.failed or verdict.doubled else 0)


@sim.command(context_settings=CONTEXT)
@click.option("--runs", default=3000, show_default=True, type=click.IntRange(min=1), help="Of the sound edition.")
@click.option("--others", default=200, show_default=True, type=click.IntRange(min=1), help="Of the other two, each.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--mixed", "is_mixed", is_flag=True, help="Groups of mixed editions, with members of Kafka 0.7; "
              "--others: runs in which those are paused and cut off as well.")
@json_option
def table(runs: int, others: int, first_seed: int, is_mixed: bool, as_json: bool) -> None:
    """All three editions side by side: in how many runs each thing went wrong.

    \b
    kafka2011 sim table --runs 300 --others 30
    kafka2011 sim table --runs 3000 --json
    kafka2011 sim table --runs 300 --others 30 --mixed
    """
    show((mixed if is_mixed else compare)(runs, others, first_seed, told=note), as_json=as_json)


@sim.command(context_settings=CONTEXT)
@_seed
@_edition
@_kind
def transcript(seed: int, edition: str, kind: str) -> None:
    """Every step of one run, line by line.

    \b
    kafka2011 sim transcript --seed 7 | less
    kafka2011 sim transcript --seed 4 --edition shipped --kind lost-replies | less
    """
    world = World(scenario(seed, edition, kind), transcript=True)
    verdict = world.run()
    click.echo("\n".join([*world.lines, str(verdict)]))


@sim.command("shrink", context_settings=CONTEXT)
@_edition
@_kind
@click.option("--seed", type=int, help="A seed that fails. Default: the first that does.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw who read what, when.")
def shrink_command(edition: str, kind: str, seed: int | None, svg: Path | None) -> None:
    """Find a failing run and leave out every fault it does not need.

    \b
    kafka2011 sim shrink --edition printed
    kafka2011 sim shrink --edition shipped --kind lost-replies --seed 3
    """
    failing = scenario(seed, edition, kind) if seed is not None else first_failure(edition, kind)
    if failing is None or not World(failing).run().failed:
        note("no failing run found; nothing to shrink")
        raise SystemExit(3)
    small = shrink(failing)
    world = World(small, transcript=True)
    verdict = world.run()
    click.echo(f"{small.n_consumers} consumers, {small.n_partitions} partitions, " + _happenings(small))
    click.echo(str(verdict))
    if svg is not None:
        svg.write_text(draw(small, verdict))
        note(f"picture: {svg}")


def _happenings(run: Scenario) -> str:
    """What goes wrong in a run, in words."""
    lost = f"{run.lost_reply_rate:.0%} of the answers are lost" if run.lost_reply_rate else ""
    if run.faults:
        return "\n".join([f"and this happens{lost and ', while '}{lost}:", *(f"  {fault}" for fault in run.faults)])
    return f"and {lost or 'nothing goes wrong'}: no {'other ' if lost else ''}fault is needed"
