"""``kafka2011 compare``: one scenario through Algorithm 1 and the three protocols that came after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from consumers.sim.lanes.compare import Run
from consumers.sim.lanes.compare import compare as put_through
from consumers.sim.lanes.figures import typical
from consumers.sim.lanes.picture import draw
from consumers.sim.lanes.scenarios import SCENARIOS
from kafka2011.cli.output import CONTEXT, json_option, note, show

ALL = "all"


@click.command(context_settings=CONTEXT)
@click.option(
    "-s",
    "--scenario",
    type=click.Choice([*SCENARIOS, ALL]),
    default="one-joins",
    show_default=True,
    help="What happens to the group.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Fixes latencies and phases: same seed, same run.")
@click.option("--runs", type=click.IntRange(1, 1000), default=1, show_default=True, help="Medians over so many seeds.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write ownership lanes here (with 'all': one file per scenario, its name added).",
)
@json_option
def compare(scenario: str, seed: int, runs: int, svg: Path | None, as_json: bool) -> None:
    """Run one scenario through four protocols and compare what it costs.

    Algorithm 1 runs its real rebalance against a simulated ZooKeeper; eager, cooperative and KIP-848 groups run the
    real coordinator with modelled members, all on virtual time, with the same latencies and the same application.

    \b
    kafka2011 compare                                  a fourth member joins three
    kafka2011 compare -s slow-member --svg lanes.svg   with a picture of who reads what
    kafka2011 compare -s all --runs 20                 everything, medians over 20 seeds
    kafka2011 compare -s crash --json                  figures and lanes, for programs
    """
    names = list(SCENARIOS) if scenario == ALL else [scenario]
    results: dict[str, list[Run]] = {}
    for name in names:
        tries = [put_through(SCENARIOS[name](each)) for each in range(seed, seed + runs)]
        middle = [typical([run.figures for run in same]) for same in zip(*tries, strict=True)]
        results[name] = [replace(run, figures=figures) for run, figures in zip(tries[0], middle, strict=True)]
        if svg is not None:
            path = svg.with_stem(f"{svg.stem}-{name}") if scenario == ALL else svg
            path.write_text(draw(name, results[name]), encoding="utf-8")
            note(f"wrote {path}")
    if as_json:
        click.echo(json.dumps({name: _as_json(shown) for name, shown in results.items()}, indent=2))
        return
    for name, shown in results.items():
        note(f"{name}: {SCENARIOS[name].__doc__}")
        show([run.figures.as_row() for run in shown], as_json=False)


def _as_json(runs: Sequence[Run]) -> list[dict[str, object]]:
    return [run.figures.as_row() | {"lanes": [asdict(lane) for lane in run.lanes]} for run in runs]
