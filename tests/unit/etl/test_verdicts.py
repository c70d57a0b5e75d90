"""Pure decisions: the plan's hash, tiling, audit verdicts, the report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hadoop_etl import report
from hadoop_etl.audit import Window, exit_code, judge
from hadoop_etl.decode import Format
from hadoop_etl.errors import PlanChanged, TilingBroken
from hadoop_etl.job import Outcome, TopicOutcome
from hadoop_etl.plan import Plan, Range, TopicPlan, read_plan
from hadoop_etl.reading import view_names
from hadoop_etl.split import Split, make_splits, walk_to
from hadoop_etl.tiling import winners
from hadoop_etl.work import SplitResult, Work
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import encode_set

PART, ADDRESS = BrokerPartition(0, 1), BrokerAddress(0, "127.0.0.1", 9092)
SPLITS = (Split(0, 100, 300), Split(100, 200, 300), Split(200, 300, 300))
RANGE = Range(PART, ADDRESS, 0, 300, None, SPLITS, (150,))
PLAN = Plan("20110612T030000-abcdef01", 1307847600000, "/w", (TopicPlan("clicks", Format(), False, (RANGE,)),))


def done(split: Split, end: int | None = None, stopped: bool = False) -> SplitResult:
    work = Work("l", "clicks", PART, ADDRESS, split, Format(), "/w", "/w__dead", False, "2011-06-12", 0, 1000)
    return SplitResult(work, split.end if end is None else end, stopped=stopped)


def test_a_plan_survives_its_file_and_notices_every_change() -> None:
    """``run --plan`` executes exactly what was written."""
    text = PLAN.to_json()
    assert read_plan(text, "file") == PLAN
    for old, new in (('"start": 0', '"start": 1'), ("clicks", "clocks"), ("}", "")):
        with pytest.raises(PlanChanged):
            read_plan(text.replace(old, new, 1), "file")


def test_splits_that_meet_are_taken_whole() -> None:
    """A walk that ends on the next cut proves that cut."""
    end, taken = winners(RANGE, [done(s) for s in reversed(SPLITS)], "clicks")
    assert end == 300
    assert [d.work.split for d in taken] == list(SPLITS)


def test_a_cut_inside_a_message_is_noticed() -> None:
    """A split that ends anywhere else than the next begins publishes nothing; sure cuts remain."""
    with pytest.raises(TilingBroken, match="inside a message"):
        winners(RANGE, [done(SPLITS[0], 117), done(SPLITS[1]), done(SPLITS[2])], "clicks")
    with pytest.raises(TilingBroken, match="no task"):
        winners(RANGE, [done(SPLITS[0]), done(SPLITS[2])], "clicks")
    (topic,) = PLAN.without_probed_splits("clicks").topics
    assert topic.ranges[0].splits == (Split(0, 150, 150), Split(150, 300, 300))


def test_a_deadline_keeps_the_longest_prefix() -> None:
    """What was read in order is published, the rest is left to the next load."""
    end, taken = winners(RANGE, [done(SPLITS[0]), done(SPLITS[1], 140, stopped=True), done(SPLITS[2])], "clicks")
    assert (end, len(taken)) == (140, 2)


def test_small_ranges_are_one_split_and_segments_are_sure() -> None:
    """Segment starts are cuts that need no proof."""
    assert make_splits(0, 100, [50], 1000, None) == [Split(0, 100, 100)]
    assert make_splits(0, 3000, [1000, 1100, 2200], 1000, None) == [
        Split(0, 1000, 1000),
        Split(1000, 2200, 2200),
        Split(2200, 3000, 3000),
    ]


def test_a_byte_limit_ends_at_a_message() -> None:
    """A budget is walked to a boundary, one message at least (§3.1)."""
    data = encode_set([b"0123456789"] * 10)

    def fetch(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    assert walk_to(fetch, 0, 65) == 60
    assert walk_to(fetch, 40, 1) == 60
    assert walk_to(fetch, 40, 0) == 40


@pytest.mark.parametrize(
    ("sent", "held", "loaded", "is_open", "verdict"),
    [
        (10, None, 10, False, "complete"),
        (10, None, 10, True, "complete"),
        (10, None, 7, False, "short by 3"),
        (10, None, 12, False, "over by 2"),
        (10, None, 7, True, "cannot tell"),
        (None, None, 7, False, "cannot tell"),
        (10, 10, 7, False, "cannot tell"),
        (10, 8, 7, False, "short by 2"),
    ],
)
def test_verdicts(sent: int | None, held: int | None, loaded: int, is_open: bool, verdict: str) -> None:
    """Per window: complete, short by n, over by n, cannot tell (§4)."""
    assert judge(sent, held, loaded, is_open)[0] == verdict


def test_exit_codes_of_the_audit() -> None:
    """0 it adds up, 1 it does not, 3 nobody can tell."""
    window = Window("clicks", 0, 10_000, 5, None, 5, "complete")
    assert exit_code([window]) == 0
    assert exit_code([window, replace(window, verdict="cannot tell")]) == 3
    assert exit_code([window, replace(window, verdict="short by 1"), replace(window, verdict="cannot tell")]) == 1
    assert exit_code([]) == 3


def test_the_report_says_what_happened() -> None:
    """JSON, one page without scripts, and metrics tell the same story; names cannot inject markup."""
    topic = TopicOutcome("clicks", 3, rows=10, dead=1, late=2, bytes=300, loaded={PART: (0, 300)})
    topic.reasons["<script>alert(1)</script>"] = 1
    topic.hours.update({361_000: 4, 361_001: 6})
    windows = [Window("clicks", 0, 10_000, 11, None, 10, "short by 1")]
    found = report.as_dict(Outcome(PLAN, [topic], 1.5), windows)
    assert json.loads(json.dumps(found))["state"] == "committed"
    page = report.html(found)
    assert "<script" not in page
    assert page.count("<rect ") == 2
    assert "short by 1" in page
    assert 'kafka2011_etl_rows{topic="clicks"} 10' in report.prometheus(found)
    assert 'kafka2011_etl_audit_windows{verdict="short"} 1' in report.prometheus(found)
    topic.error = "no"
    assert report.as_dict(Outcome(PLAN, [topic]), [])["state"] == "failed"


def test_views_of_topics_with_one_name_in_sql() -> None:
    """``a-b``, ``a.b``, ``a_b`` and ``A_B`` are four views; a quarantine's name collides with none (issue 20 A3)."""
    names = view_names(["a-b", "a.b", "a_b", "A_B", "a_b__dead", "clicks"])
    assert (names["a-b"].startswith("a_b"), names["clicks"]) == (True, "clicks")
    every = [view.lower() for name in names.values() for view in (name, f"{name}__dead")]
    assert len(set(every)) == len(every) == 12


def test_metrics_are_exact() -> None:
    """Prometheus reads the very numbers: seconds of today, a million rows (issue 21 point 11)."""
    outcome = Outcome(replace(PLAN, created_ms=1_795_123_456_789), [TopicOutcome("clicks", version=1, rows=1_234_567)])
    families = text_string_to_metric_families(report.prometheus(report.as_dict(outcome, [])))
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found["kafka2011_etl_last_load_timestamp_seconds"] == 1_795_123_456
    assert found["kafka2011_etl_rows"] == 1_234_567
    assert found["kafka2011_etl_last_exit_code"] == 0
