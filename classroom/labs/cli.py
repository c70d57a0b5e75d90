"""``kafka2011 lab``: begin a lab, check it, get a hint, hand it in; grade a class."""

from __future__ import annotations

import getpass
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from classroom.labs import packing, report
from classroom.labs.catalogue import LABS, lab
from classroom.labs.grading import PRACTICE, Report, grade
from classroom.labs.packing import BadPackage, Work
from kafka2011.cli.output import CONTEXT, CommandGroup, json_option, note, show

_where = click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
_key = click.option(
    "--key",
    envvar="KAFKA2011_LAB_KEY",
    default=PRACTICE,
    metavar="SECRET",
    help="The teacher's secret: it decides each student's random numbers. Without it they are those of everybody.",
)


@click.group("lab", cls=CommandGroup, context_settings=CONTEXT)
def labs() -> None:
    """Six graded labs: write the parts of the paper yourself."""


@labs.command("list", context_settings=CONTEXT)
@json_option
def list_labs(as_json: bool) -> None:
    """The labs, with the section of the paper, hours of work and points.

    \b
    kafka2011 lab list
    kafka2011 lab list --json
    """
    show([report.row(one) for one in LABS], as_json=as_json)


@labs.command(context_settings=CONTEXT)
@click.argument("number", type=click.IntRange(1, len(LABS)))
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), help="Where to; lab-N unless told otherwise.")
@click.option("--student", default=None, metavar="NAME", help="Your name; your account's unless told otherwise.")
def start(number: int, into: Path | None, student: str | None) -> None:
    """Begin a lab: its page, its files with holes, and the first test that fails.

    \b
    kafka2011 lab start 1
    kafka2011 lab start 6 --into ~/course/lab-6 --student anna
    """
    directory = into or Path(f"lab-{number}")
    try:
        work = packing.hand_out(lab(number), directory, student or getpass.getuser())
    except BadPackage as error:
        raise click.ClickException(str(error)) from None
    one = work.lab
    click.echo(f"Lab {one.number}, {one.title} (§{one.section}), is in {directory}/.")
    click.echo(f"Read {directory}/README.md, then fill the holes of {directory}/{one.module}.py.\n")
    _told(grade(one, directory, work.student, seen_only=True), sum(test.points for test in one.seen()))
    click.echo(f"\nThat is as it should be: the holes are empty. Next: kafka2011 lab check {directory}")


@labs.command(context_settings=CONTEXT)
@_where
@json_option
def check(directory: Path, as_json: bool) -> None:
    """Run the tests you see; exit code 1 if one fails.

    \b
    kafka2011 lab check lab-1
    cd lab-1 && kafka2011 lab check
    """
    work = _work(directory)
    done = grade(work.lab, directory, work.student, seen_only=True)
    _end(done, sum(test.points for test in work.lab.seen()), directory, as_json)


@labs.command(context_settings=CONTEXT)
@_where
@click.argument("test", required=False)
def hint(directory: Path, test: str | None) -> None:
    """A hint for a test that you see: the one named, or the first that fails.

    \b
    kafka2011 lab hint lab-1
    kafka2011 lab hint lab-1 offsets_by_arithmetic
    """
    work = _work(directory)
    seen = {one.name: one for one in work.lab.seen()}
    if test is None:
        done = grade(work.lab, directory, work.student, seen_only=True)
        if not done.failures:
            click.echo("Every test you see passes. For the others read README.md again, sentence by sentence.")
            return
        test = done.failures[0].test.name
    if test.replace("-", "_") not in seen:
        raise click.UsageError(f"lab {work.lab.number} has these tests: {', '.join(seen)}")
    found = seen[test.replace("-", "_")]
    click.echo(f"{found.name}: {found.title}\n{found.hint}")


@labs.command(context_settings=CONTEXT)
@_where
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=".", help="Where the archive goes.")
@_key
@json_option
def submit(directory: Path, to: Path, key: str, as_json: bool) -> None:
    """Pack your work into one file and run every test on it, those you do not see too.

    \b
    kafka2011 lab submit lab-1
    cd lab-1 && kafka2011 lab submit
    """
    work = _work(directory)
    archive = packing.pack(work, to)
    note(f"packed: {archive}")
    with tempfile.TemporaryDirectory(prefix="kafka2011-lab-") as unpacked:
        packed = packing.unpack(archive, Path(unpacked))
        done = grade(work.lab, packed.directory, work.student, key=key)
    _end(done, work.lab.points, directory, as_json)


@labs.command("grade", context_settings=CONTEXT)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=max(1, (os.cpu_count() or 2) // 2),
    show_default=True,
    help="Side by side; at most two for each processor, so that nobody waits for the grader.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="One JSON report per submission.")
@_key
@json_option
def grade_class(folder: Path, jobs: int, out: Path | None, key: str, as_json: bool) -> None:
    """For teachers: grade every submission in a folder.

    \b
    KAFKA2011_LAB_KEY=… kafka2011 lab grade handed-in --out reports
    kafka2011 lab grade handed-in --json
    """
    archives = sorted(folder.glob(f"*{packing.SUFFIX}"))
    if not archives:
        raise click.ClickException(f"no *{packing.SUFFIX} in {folder}")
    with ThreadPoolExecutor(min(jobs, 2 * (os.cpu_count() or 1))) as pool:
        rows = list(pool.map(lambda archive: _graded(archive, key, out), archives))
    show(rows, as_json=as_json)


def _graded(archive: Path, key: str, out: Path | None) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="kafka2011-lab-") as unpacked:
        try:
            work = packing.unpack(archive, Path(unpacked))
        except BadPackage as error:
            return {"submission": archive.name, "student": "", "lab": "", "points": 0, "why": str(error)}
        done = grade(work.lab, work.directory, work.student, key=key)
    if out is not None:
        folder = out / archive.name.removesuffix(packing.SUFFIX)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(report.as_json(done), indent=2) + "\n")
        report.keep_replays(done, folder)
    failed = ", ".join(outcome.test.name for outcome in done.failures)
    return {
        "submission": archive.name,
        "student": work.student,
        "lab": work.lab.number,
        "points": done.points,
        "why": "; ".join(done.refused) or failed,
    }


def _work(directory: Path) -> Work:
    try:
        return packing.work_in(directory)
    except BadPackage as error:
        raise click.ClickException(str(error)) from None


def _end(done: Report, of: int, directory: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.as_json(done), indent=2))
    else:
        _told(done, of)
    for path in report.keep_replays(done, directory):
        note(f"replay: {path}")
    raise SystemExit(1 if done.failures else 0)


def _told(done: Report, of: int) -> None:
    for text in done.refused:
        click.echo(f"not run: {text}")
    if not done.refused:
        for outcome in done.outcomes:
            click.echo(report.line(outcome))
        if done.failures:
            click.echo(f"\n{report.first_failure(done)}\n")
    click.echo(report.total(done, of))
