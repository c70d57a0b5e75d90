"""``kafka2011 semantics``: what the words at most once, at least once and exactly once mean, tried out."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING

import click

from kafka2011.cli.output import CONTEXT, fail, note
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from classroom.semantics.verdict import Verdict

_FEWEST = 40


@click.command(context_settings=CONTEXT)
@click.option("--records", default=120, show_default=True, type=click.IntRange(min=_FEWEST), help="Records of a run.")
@click.option("--kills", default=2, show_default=True, type=click.IntRange(1, 5), help="Rounds of faults in each run.")
@click.option("--only", type=click.Choice(["producer", "loop"]), help="One of the two tables.")
@click.option("--json", "as_json", is_flag=True, help="One object per line, for programs.")
def semantics(records: int, kills: int, only: str | None, as_json: bool) -> None:
    """Send and process numbered records under faults, and count what was lost, repeated or out of order.

    First a producer, with acks 0, 1 and all, with and without idempotence, one and five requests in flight: requests
    are lost, answers are lost, the broker is killed, at the same requests for all. Then the loop consume, transform,
    produce, whose process is killed between its two steps: at most once, at least once, exactly once.

    \b
    kafka2011 semantics                            both tables, in about a minute
    kafka2011 semantics --only loop --kills 3      only the loop, killed three times
    """
    from classroom.semantics.looping import looping
    from classroom.semantics.producing import Bench, producing

    try:
        with Bench() as bench:
            if only != "loop":
                _head(as_json, f"{'acks':<5}{'idempotence':<13}{'in flight':<11}")
                for setup, verdict in producing(bench, records, kills):
                    words = {"acks": setup.acks, "idempotence": setup.idempotent, "in_flight": setup.in_flight}
                    on = "on" if setup.idempotent else "off"
                    _row(as_json, words, f"{setup.acks:<5}{on:<13}{setup.in_flight:<11}", verdict)
            if only != "producer":
                _head(as_json, f"{'loop':<29}")
                for mode, committed, everything in looping(bench, records, kills):
                    _row(as_json, {"loop": mode, "read": "committed"}, f"{mode:<29}", committed)
                    if everything != committed:
                        what = f"{mode}, uncommitted too"
                        _row(as_json, {"loop": mode, "read": "uncommitted"}, f"{what:<29}", everything)
    except (Kafka2011Error, RuntimeError) as error:
        fail(str(error))
    if not as_json:
        note("one broker: what acks=1 loses when a leader dies and a follower takes over is shown by make failover")


def _head(as_json: bool, first: str) -> None:
    if not as_json:
        click.echo(f"{first}{'lost':>6}{'twice':>7}{'misplaced':>11}   exactly once, in order")


def _row(as_json: bool, words: dict[str, object], first: str, verdict: Verdict) -> None:
    counted = {"lost": verdict.lost, "duplicated": verdict.duplicated, "misplaced": verdict.misplaced}
    if as_json:
        click.echo(json_module.dumps(words | counted | {"exact": verdict.exact}))
    else:
        yes = "yes" if verdict.exact else "no"
        click.echo(f"{first}{verdict.lost:>6}{verdict.duplicated:>7}{verdict.misplaced:>11}   {yes}")
