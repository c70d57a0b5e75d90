"""``make siege``: lay siege to a broker, and say what held.

    make siege                                every row, the matrix of acknowledgements, the fuzzer: about ten minutes
    make siege ARGS="--only B1 --only B6"         the rows whose names begin so
    make siege ARGS="--part acks --part fuzz --seconds 60"

Each row has a broker of its own. The bars: a bystander's p99 at most 250 ms on each port and as a newcomer, at most
256 MiB of memory more, no process ended, served again within 5 s. The controls plant a stall, greed, death, silence and
a lie, and must be found out. The exit code is 1 if a row broke a bar or a control went unnoticed.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.siege import acks, attacks_2011, attacks_disk, attacks_modern, fuzz
from benchmarks.siege.controls import CONTROLS
from benchmarks.siege.field import HEAD, Row, run
from benchmarks.siege.fuzz_targets import CONTROL, TARGETS

ROWS: tuple[Row, ...] = (*attacks_2011.ROWS, *attacks_modern.ROWS, *attacks_disk.ROWS)
PARTS = ("rows", "controls", "acks", "fuzz")


@click.command()
@click.option("--only", multiple=True, help="Only the rows whose names begin with this.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part; may be repeated.")
@click.option("--seconds", default=10.0, show_default=True, help="For each target of the fuzzer.")
def main(only: tuple[str, ...], parts: tuple[str, ...], seconds: float) -> None:
    """Lay siege to a broker, and say what held."""
    wanted = set(parts or (("rows",) if only else PARTS))
    broken: list[str] = []
    if "rows" in wanted:
        broken += _rows(only)
    if "controls" in wanted:
        broken += _controls()
    if "acks" in wanted:
        broken += _acks()
    if "fuzz" in wanted:
        broken += _fuzz(seconds)
    click.echo("")
    for line in broken:
        click.echo(f"broken: {line}")
    click.echo("everything held" if not broken else f"{len(broken)} broken")
    raise SystemExit(1 if broken else 0)


def _rows(only: tuple[str, ...]) -> Iterator[str]:
    click.echo(HEAD)
    for row in ROWS:
        if not only or row.name.startswith(only):
            verdict = run(row)
            click.echo(verdict.line())
            yield from (f"{row.name}: {text}" for text in verdict.wrong)


def _controls() -> Iterator[str]:
    click.echo(f"\n{HEAD}")
    for row, sign in CONTROLS:
        verdict = run(row)
        click.echo(verdict.line())
        if not any(sign in text for text in verdict.wrong):
            yield f"{row.name} went unnoticed"


def _acks() -> Iterator[str]:
    click.echo("\nacknowledgements: fault by port, level, one and many partitions")
    with tempfile.TemporaryDirectory(prefix="kafka2011-acks-") as place:
        prepared = Path(place) / "prepared"
        found = {"undisturbed": acks.prepare(prepared)}
        for fault in acks.FAULTS:
            found[fault.name] = acks.strike(fault, prepared, Path(place) / fault.name)
    for name, verdicts in found.items():
        told = Counter(verdict.told.value for verdict in verdicts)
        answers = ", ".join(f"{n} {what}" for what, n in told.items())
        wrong = [str(verdict) for verdict in verdicts if verdict.wrong]
        click.echo(f"{name:<22} {len(verdicts):>3} answers: {answers}   {'; '.join(wrong) or 'held'}")
        yield from wrong
    liar = acks.Verdict(acks.UNDISTURBED, acks.CELLS[0], 0, acks.Told.ACKED, stored=False)
    if not liar.wrong:
        yield "control: an acknowledgement of a message that is not there went unnoticed"


def _fuzz(seconds: float) -> Iterator[str]:
    click.echo(f"\nparsers, {'guided by coverage (atheris)' if fuzz.is_guided() else 'by chance: pip install atheris'}")
    for target in TARGETS:
        outcome = fuzz.fuzz(target, seconds)
        click.echo(outcome.line())
        if (target == CONTROL) == (not outcome.crash):
            yield f"{target}: {outcome.crash or 'the planted fault was not found'}"


if __name__ == "__main__":
    main()
