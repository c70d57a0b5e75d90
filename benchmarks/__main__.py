"""``python -m benchmarks``: the paper's §5 on this machine, beside the peers that are installed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from benchmarks import broker_rows, report
from benchmarks.growth import NotEnoughRoom, check_room, growth
from benchmarks.limits import MB, make_loops, measure_limits
from benchmarks.measure import busy_loop, run_rounds, say
from benchmarks.system import System
from benchmarks.systems import SYSTEMS

_RESULTS = Path(__file__).parents[1] / "docs" / "results"


@click.command()
@click.option("--quick", is_flag=True, help="Three small rounds, about two minutes.")
@click.option("--full", is_flag=True, help="More rounds, and data growing to 10 GB.")
@click.option("--rounds", type=click.IntRange(min=1), help="Interleaved rounds (default: 5; 3 quick, 7 full).")
@click.option("--only", multiple=True, type=click.Choice(list(SYSTEMS)), help="Measure only these systems.")
@click.option("--out", default=_RESULTS, type=click.Path(path_type=Path), show_default=True, help="Where to write.")
@click.option("--work", type=click.Path(path_type=Path, exists=True), help="Directory for the servers' data.")
def main(quick: bool, full: bool, rounds: int | None, only: tuple[str, ...], out: Path, work: Path | None) -> None:
    """Measure the paper's §5 and write table and figures.

    \b
    python -m benchmarks --quick
    python -m benchmarks --only kafka2011 --only RabbitMQ --rounds 7
    """
    scale = 0.4 if quick else 1.0
    rounds = rounds or (3 if quick else 7 if full else 5)
    directory = Path(tempfile.mkdtemp(prefix="kafka2011-bench-", dir=work))
    sizes = [100 * MB, 1000 * MB, 10_000 * MB] if full else [100 * MB, 500 * MB] if quick else [100 * MB, 1000 * MB]
    grow_rounds, grow_step = (5, 25 * MB) if quick else (9, 50 * MB)
    systems = [kind() for name, kind in SYSTEMS.items() if not only or name in only]
    missing = {system.name: reason for system in systems if (reason := system.missing())}
    try:
        check_room(directory, sizes, grow_rounds, grow_step)
        run: dict[str, object] = {"command": " ".join(["python -m benchmarks", *sys.argv[1:]]), "rounds": rounds}
        run["busy_before_s"] = busy_loop()
        _start(systems, directory, missing)
        try:
            results = run_rounds(systems, rounds, scale, missing)
        finally:
            for system in systems:
                system.stop()
        for name, reason in missing.items():
            say(f"not measured: {name}: {reason}")
        run["missing"] = missing
        loops = make_loops(directory)
        run["limits_how"] = loops.how
        say(f"limits of the machine, {loops.how}")
        run["limits"] = measure_limits(loops, directory, scale)
        say("serving 300 KB fetches")
        run["serving"] = broker_rows.serving(loops, directory, scale)
        say(f"growing to {sizes[-1] // MB:,} MB")
        run["growth"] = growth(loops, directory, sizes, grow_rounds, grow_step)
        say("fetching while every fsync takes 300 ms")
        run["slow_disk"] = broker_rows.slow_disk(directory, scale)
        run["busy_after_s"] = busy_loop()
        report.write(out, run, results)
        say(f"written to {out}/results.md")
    except NotEnoughRoom as error:
        raise click.ClickException(str(error)) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _start(systems: list[System], directory: Path, missing: dict[str, str]) -> None:
    for system in systems:
        if system.name in missing:
            continue
        say(f"starting {system.name}")
        home = directory / system.name.split()[0].lower()
        home.mkdir()
        try:
            system.start(home)
        except (RuntimeError, OSError) as error:
            missing[system.name] = f"could not be started: {error}"


if __name__ == "__main__":
    main()
