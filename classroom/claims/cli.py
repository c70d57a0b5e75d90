"""``kafka2011 claims``: the paper's sentences on trial."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import click

from classroom.claims.claim import Verdict
from classroom.claims.harness.bench import Scale
from classroom.claims.runs import Result, Trial, kept, results_directory, run_all, trial, trials
from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show

_results = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the verdicts. Default: kafka2011-claims in the user's data directory.",
)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def claims() -> None:
    """Sentences of the paper as experiments with verdicts."""


@claims.command("list", context_settings=CONTEXT)
@_results
@json_option
def list_claims(results: Path | None, as_json: bool) -> None:
    """All claims, with the last verdict of this machine.

    \b
    kafka2011 claims list
    kafka2011 claims list --results docs/results/claims
    """
    known = kept(results or results_directory())
    rows = []
    for one in trials():
        claim, last = one.CLAIM, known.get(one.CLAIM.number, {})
        rows.append(
            {"claim": claim.number, "section": f"§{claim.section}", "title": claim.title,
             "verdict": last.get("verdict"), "run": last.get("date")}
        )  # fmt: skip
    show(rows, as_json=as_json)


@claims.command("show", context_settings=CONTEXT)
@click.argument("number")
@_results
@json_option
def show_claim(number: str, results: Path | None, as_json: bool) -> None:
    """The sentence, the experiment, the threshold, and the last verdict.

    \b
    kafka2011 claims show C07
    kafka2011 claims show C07 --json
    """
    found = trial(number).CLAIM
    last = kept(results or results_directory()).get(found.number)
    if as_json:
        click.echo(json.dumps(last or _as_dict(trial(number)), indent=2, ensure_ascii=False))
        return
    _tell(_as_dict(trial(number)))
    if last is None:
        note(f"\nnot run yet: kafka2011 claims run {found.number}")
    else:
        _tell_verdict(last)


@claims.command("run", context_settings=CONTEXT)
@click.argument("numbers", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every claim, one after the other.")
@click.option("--quick", is_flag=True, help="Smaller experiments: all of them in about four minutes.")
@click.option("--twist", is_flag=True, help="Turn the experiment upside down; the verdict is shown and not kept.")
@click.option("--live", is_flag=True, help="Every point as it is measured, a line of JSON each (for the page).")
@_results
@json_option
def run_claims(
    numbers: tuple[str, ...],
    everything: bool,
    quick: bool,
    twist: bool,
    live: bool,
    results: Path | None,
    as_json: bool,
) -> None:
    """Do experiments and judge them. Exit code 0: all could be told; 3: some could not be told here.

    \b
    kafka2011 claims run C03
    kafka2011 claims run C03 --twist
    kafka2011 claims run --all --quick
    kafka2011 claims run --all --json > verdicts.json
    """
    if bool(numbers) is everything:
        raise click.UsageError("name one claim or more (C03 C10), or ask for --all")
    chosen = trials() if everything else [trial(number) for number in numbers]
    scale = Scale.QUICK if quick else Scale.FULL

    def tell(event: dict[str, Any]) -> None:
        if live:
            click.echo(json.dumps(event, ensure_ascii=False))
        elif "claim" in event and not as_json:
            note(f"{event['claim']}  {event['title']} …")

    done: list[Result] = []
    for result in run_all(chosen, results or results_directory(), scale=scale, twisted=twist, tell=tell):
        done.append(result)
        if not (live or as_json):
            _tell_line(result) if len(chosen) > 1 else _tell_all(result)
    if as_json and not live:
        click.echo(json.dumps([result.as_dict() for result in done], indent=2, ensure_ascii=False))
    elif len(done) > 1 and not live:
        _tell_sum(done)
    raise SystemExit(3 if any(result.judgement.verdict is Verdict.UNKNOWN for result in done) else 0)


@claims.command("report", context_settings=CONTEXT)
@_results
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Default: beside the verdicts.")
def report_command(results: Path | None, output: Path | None) -> None:
    """Write the verdicts as a page to hand out: report.html, README.md, a picture for each claim.

    \b
    kafka2011 claims report
    kafka2011 claims report --results docs/results/claims
    """
    from classroom.claims.report import summary, write

    found = kept(results or results_directory())
    if not found:
        fail("no verdicts yet: kafka2011 claims run --all --quick", 3)
    written = write(found, output or results or results_directory())
    note(f"{len(found)} claims: {summary(found)}")
    click.echo(str(written[0]))


def _as_dict(one: Trial) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(one.CLAIM)


def _tell(claim: dict[str, Any]) -> None:
    click.echo(f"{claim['number']}  §{claim['section']}  {claim['title']}\n")
    _paragraph("paper", f"“{claim['sentence']}”")
    for name in ("experiment", "threshold", "twist", "dissent", "later"):
        _paragraph(name, claim[name])
    walk = [claim["walk"]] if claim["walk"] else []
    _paragraph("look at", ", ".join([*claim["code"], *claim["tests"], *walk]))


def _tell_verdict(result: dict[str, Any]) -> None:
    click.echo("")
    _paragraph("verdict", str(result["verdict"]).upper() + (" (turned upside down)" if result["twisted"] else ""))
    _paragraph("figure", result["figure"])
    if result["footnote"]:
        _paragraph("footnote", result["footnote"])
    if result["spread"]:
        _paragraph("spread", result["spread"])
    when = f"{result['date']}, {result['seconds']} s, {result['scale']}"
    _paragraph("run", f"{when}; {result['machine']}; {result['busy']}")


def _tell_all(result: Result) -> None:
    found = result.as_dict()
    _tell(found)
    _tell_verdict(found)


def _tell_line(result: Result) -> None:
    judgement = result.judgement
    click.echo(f"{result.claim.number}  {judgement.verdict:<22} {judgement.figure}")


def _tell_sum(done: list[Result]) -> None:
    counts = {verdict: sum(result.judgement.verdict is verdict for result in done) for verdict in Verdict}
    seconds = sum(result.seconds for result in done)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    note(f"{len(done)} claims in {seconds / 60:.1f} minutes: {told}")


def _paragraph(name: str, text: str) -> None:
    click.echo(textwrap.fill(text, 110, initial_indent=f"{name:<11}", subsequent_indent=" " * 11))
