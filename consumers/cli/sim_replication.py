"""``kafka2011 sim replication``: the broker's replication rules in virtual time, and what older rules lost."""

from __future__ import annotations

import click

from consumers.sim.replication.rules import MUTANTS, name_of
from consumers.sim.replication.runs import Lesson, many, rules_called, show_lesson
from consumers.sim.replication.world import World
from kafka2011.cli.output import CONTEXT, json_option, note, show

LESSONS = {
    "high-watermark-truncation": Lesson(
        rules_called("cut_at_high_watermark"),
        24,
        "Until 0.11 a returning follower cut its log at its own high watermark, "
        "which it learns one round late (KIP-101).",
    ),
    "leader-without-an-epoch": Lesson(
        rules_called("forget_own_epoch"),
        24,
        "A new leader did not note where its epoch begins; "
        "later questions about it were answered wrongly (KAFKA-7415).",
    ),
    "same-leader-new-epoch": Lesson(
        rules_called("same_leader_same_history"),
        40,
        "A follower whose leader stayed the same asked nothing when the epoch rose (KAFKA-7164).",
    ),
    "counting-before-it-is-stored": Lesson(
        rules_called("shrink_before_stored"),
        1,
        "A leader counts a follower as gone before ZooKeeper has stored it: the follower can still be elected.",
    ),
    "hanging-producer": Lesson(
        rules_called("no_raise_after_shrink"),
        11,
        "A smaller in-sync set was stored, and nobody looked at the watermark again: producers hang (KAFKA-13091).",
    ),
    "old-controller": Lesson(
        rules_called("obey_old_controllers"),
        45,
        "A controller that was replaced is still obeyed (KAFKA-1188).",
    ),
    "unclean-election": Lesson(
        rules_called("elect_anybody"),
        8,
        "Nobody in sync is alive, and somebody else is made leader: what only the others had is lost.",
    ),
}


@click.command(context_settings=CONTEXT)
@click.option("--runs", default=200, show_default=True, type=click.IntRange(min=1), help="How many seeds.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--seed", type=int, help="One run, step by step.")
@click.option("--lesson", type=click.Choice(sorted(LESSONS)), help="A run in which an older Kafka loses data.")
@click.option("--rule", type=click.Choice([name_of(rules) for rules in MUTANTS]), help="Run with this rule changed.")
@json_option
def replication(
    runs: int, first_seed: int, seed: int | None, lesson: str | None, rule: str | None, as_json: bool
) -> None:
    """Leader, followers and controller under crashes, cuts and lost disks; exit code 1 if a promise is broken.

    \b
    kafka2011 sim replication --runs 1000
    kafka2011 sim replication --lesson high-watermark-truncation
    kafka2011 sim replication --seed 24 --rule cut_at_high_watermark
    """
    if lesson is not None:
        _lesson(LESSONS[lesson])
        return
    rules = World(0).rules if rule is None else rules_called(rule)
    if seed is not None:
        world = World(seed, rules, lines=[])
        violation = world.run()
        click.echo("\n".join(world.lines or []))
        click.echo("every promise held" if violation is None else f"broken: {violation}")
        raise SystemExit(0 if violation is None else 1)
    tally = many(runs, first_seed, rules)
    row = {
        "runs": tally.runs,
        "faults": tally.faults,
        "acknowledged": tally.acknowledged,
        "broken": len(tally.violations),
    }
    show([row], as_json=as_json)
    for failing, what in list(tally.violations.items())[:10]:
        note(f"seed {failing}: {what}")
    raise SystemExit(1 if tally.violations else 0)


def _lesson(lesson: Lesson) -> None:
    click.echo(lesson.story)
    note("looking for the smallest run that shows it ...")
    shown = show_lesson(lesson)
    click.echo("\nWhat goes wrong in the world:")
    for fault in shown.faults:
        click.echo(f"  {fault}")
    click.echo("\nWith the old rule:")
    for line in shown.then:
        click.echo(f"  {line}")
    click.echo(f"\nThe same faults with today's rule: {shown.today or 'every promise holds'}")
