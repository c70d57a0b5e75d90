"""Algorithm 1 in a simulated world: many seeds, the real code, a verdict for each."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from consumers.algorithm1 import assign
from consumers.algorithm1.editions import EDITIONS, SOUND
from consumers.cli.sim import run, shrink_command
from consumers.sim.picture import draw, label_rows
from consumers.sim.runs import first_failure, scenario, shrink, verdicts
from consumers.sim.verdict import Lane, overlaps
from consumers.sim.world import World

SEEDS = 50


@pytest.mark.parametrize("kind", ["faults", "lost-replies"])
def test_the_sound_edition_loses_nothing(kind: str) -> None:
    """Through kills, pauses, cuts, growth and lost replies: no message lost, no partition orphaned at rest, no commit
    by a non-owner, no offset going back, and no more than one message in twenty delivered again (§3.2, §3.3)."""
    runs = verdicts("sound", kind, SEEDS)

    assert [str(v) for v in runs if v.failed or v.doubled] == []
    assert sum(v.rebalances for v in runs) > 10 * SEEDS, "the runs were eventful"
    assert sum(v.duplicates for v in runs) <= 0.05 * sum(v.messages for v in runs)


def test_the_fence_keeps_zombies_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member back from the dead moves no offset, even if its client library already has a new session; without the
    fence it does (§3.3)."""
    assert [str(v) for v in verdicts("sound", "zombies", 20) if v.failed] == []

    monkeypatch.setitem(EDITIONS, "sound", replace(SOUND, fenced=False))
    assert any(v.non_owner_commits for v in verdicts("sound", "zombies", 20))


def test_members_that_come_and_go_in_peace_cause_no_duplicate() -> None:
    """With clean joins and leaves only, every message is delivered exactly once (§3.2)."""
    runs = verdicts("sound", "clean", SEEDS // 2)

    assert [str(v) for v in runs if v.failed or v.duplicates] == []


def test_the_printed_edition_fails_as_the_analysis_says() -> None:
    """As printed: partitions without a reader, lost messages, and duplicates even in peace (§3.2)."""
    runs = verdicts("printed", "clean", 12)

    assert any(v.orphans for v in runs) and any(v.lost for v in runs)
    assert sum(v.duplicates for v in runs) > 0.05 * sum(v.messages for v in runs)


def test_the_shipped_edition_gives_up_and_commits_what_it_does_not_own() -> None:
    """As shipped: members that give up, and offsets moved by non-owners (§3.2)."""
    runs = verdicts("shipped", "lost-replies", 20)

    assert any(v.gave_up for v in runs)
    assert any(v.non_owner_commits for v in runs)


@pytest.mark.parametrize("kind", ["kills", "away"])
def test_groups_of_0_7_and_ours_always_settle(kind: str) -> None:
    """Members of `sound`, of `shipped` and of 0.7 in one group, more than ten partitions, kills of either kind: in the
    end every partition has exactly one owner, who reads it, and ours kept every promise (Issue 19 A5)."""
    runs = verdicts("mixed", kind, 15)

    assert [str(v) for v in runs if v.failed] == []
    assert sum(v.rebalances for v in runs) > 10 * SEEDS, "the runs were eventful"


def test_another_rule_of_sharing_in_a_mixed_group_does_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """With exact fractions in numeric order, both sides claim what the other counts as its own (Issue 19 A5)."""
    monkeypatch.setitem(EDITIONS, "sound", replace(SOUND, share=assign.fraction))

    assert any(v.unsettled for v in verdicts("mixed", "kills", 5))


def test_a_run_replays_event_by_event() -> None:
    """The same seed gives the same transcript, line by line."""
    first, second = (World(scenario(11, "sound", "lost-replies"), transcript=True) for _ in range(2))
    assert first.run() == second.run()
    assert first.lines == second.lines and len(first.lines) > 500


def test_a_failing_run_shrinks_to_what_it_needs_and_can_be_drawn() -> None:
    """A failing seed is reduced to the faults it needs; its picture shows every partition (§3.2)."""
    failing = first_failure("printed", "faults", at_most=30)
    assert failing is not None
    small = shrink(failing)
    verdict = World(small).run()

    assert verdict.failed and len(small.faults) < len(failing.faults)
    picture = draw(small, verdict)
    assert picture.startswith("<svg") and all(lane.partition in picture for lane in verdict.lanes)


@pytest.mark.parametrize(
    ("edition", "said"),
    [
        ("printed", r"\d consumers, \d partitions, and nothing goes wrong: no fault is needed\n"),
        ("shipped", r"\d consumers, \d partitions, and this happens:\n +[\d.]+ s  \w+"),
    ],
)
def test_shrink_says_what_is_needed(edition: str, said: str) -> None:
    """The smallest failing run is told in words, also when nothing at all has to go wrong (§3.2)."""
    told = CliRunner().invoke(shrink_command, ["--edition", edition, "--seed", "0"])

    assert told.exit_code == 0 and re.match(said, told.output), told.output


def test_two_readers_of_one_partition_are_named() -> None:
    """Issue 22 B13: one reader per partition is the promise; the verdict names a breach, exit code 1 (§3.2)."""
    told = CliRunner().invoke(run, ["--edition", "printed", "--kind", "clean", "--seed", "2"])

    assert told.exit_code == 1
    assert re.match(r"seed 2, printed: \d+ partitions had two readers at once, for [\d.]+ s in all; ", told.output)


def test_readers_overlap_where_their_times_do() -> None:
    """Two members on one partition count for as long as both read; one after the other, or elsewhere, does not."""
    lanes = [Lane("a", "0-0", 0, 5), Lane("b", "0-0", 4, 9), Lane("a", "0-0", 9, 10), Lane("c", "0-1", 0, 9)]

    assert overlaps(lanes) == {"0-0": 1}


def test_labels_that_would_touch_are_in_different_rows() -> None:
    """Issue 22 B13: in the picture no label lies on another."""
    assert label_rows([(0, "join"), (10, "leave"), (12, "kill"), (200, "grow")]) == [0, 1, 2, 0]
