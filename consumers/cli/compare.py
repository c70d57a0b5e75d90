"""``kafka2011 compare``: one scenario through Algorithm 1 and the three protocols that came after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from consumers.sim.compare.figures import typical
from consumers.sim.compare.live import LIVE, run_live
from consumers.sim.compare.picture import draw
from consumers.sim.compare.scenarios import SCENARIOS
from consumers.sim.compare.side_by_side import PROTOCOLS, Run
from consumers.sim.compare.side_by_side import compare as put_through
from kafka2011.cli.output import CONTEXT, json_option, note, show
from kafka2011.errors import Kafka2011Error

ALL = "all"
_NOT_COUNTED_LIVE = ("requests", "heartbeats", "commits")


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
@click.option("--live", is_flag=True, help="With real processes, in real time: some 20 s for each protocol.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write ownership lanes here (with 'all': one file per scenario, its name added).",
)
@json_option
def compare(scenario: str, seed: int, runs: int, live: bool, svg: Path | None, as_json: bool) -> None:
    """Run one scenario through four protocols and compare what it costs.

    Algorithm 1 runs its real rebalance against a simulated ZooKeeper; eager, cooperative and KIP-848 groups run the
    real coordinator with modelled members, all on virtual time, with the same latencies and the same application.

    \b
    kafka2011 compare                                  a fourth member joins three
    kafka2011 compare -s slow-member --svg lanes.svg   with a picture of who reads what
    kafka2011 compare -s all --runs 20                 everything, medians over 20 seeds
    kafka2011 compare -s crash --json                  figures and lanes, for programs
    kafka2011 compare -s crash --live                  a broker, a ZooKeeper and members that are killed
    """
    names = list(LIVE if live else SCENARIOS) if scenario == ALL else [scenario]
    if live and not set(names) <= set(LIVE):
        raise click.UsageError(f"--live can do {', '.join(LIVE)}: the others need an application we can slow down")
    results: dict[str, list[Run]] = {}
    for name in names:
        results[name] = _live(name, seed) if live else _simulated(name, seed, runs)
        if svg is not None:
            path = svg.with_stem(f"{svg.stem}-{name}") if scenario == ALL else svg
            path.write_text(draw(name, results[name]), encoding="utf-8")
            note(f"wrote {path}")
    if as_json:
        click.echo(json.dumps({name: _as_json(shown) for name, shown in results.items()}, indent=2))
        return
    for name, shown in results.items():
        note(f"{name}: {SCENARIOS[name].__doc__}")
        hidden = _NOT_COUNTED_LIVE if live else ()
        rows = [run.figures.as_row() for run in shown]
        show([{k: v for k, v in row.items() if k not in hidden} for row in rows], as_json=False)


def _simulated(name: str, seed: int, runs: int) -> list[Run]:
    tries = [put_through(SCENARIOS[name](each)) for each in range(seed, seed + runs)]
    middle = [typical([run.figures for run in same]) for same in zip(*tries, strict=True)]
    return [replace(run, figures=figures) for run, figures in zip(tries[0], middle, strict=True)]


def _live(name: str, seed: int) -> list[Run]:
    found = []
    for protocol in PROTOCOLS:
        note(f"{name}: {protocol} …")
        try:
            found.append(run_live(SCENARIOS[name](seed), protocol))
        except Kafka2011Error as error:
            note(f"{protocol} was left out: {error}")
    return found


def _as_json(runs: Sequence[Run]) -> list[dict[str, object]]:
    return [run.figures.as_row() | {"lanes": [asdict(lane) for lane in run.lanes]} for run in runs]
