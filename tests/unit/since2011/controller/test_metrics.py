"""The controller's numbers, and the page that lists them."""

from __future__ import annotations

from pathlib import Path

from since2011.controller.candidate import Candidate
from since2011.controller.metrics import COUNTERS, GAUGES, PREFIX, ControllerMetrics
from tests.unit.since2011.controller.cluster import Cluster

DOCS = Path(__file__).resolve().parents[4] / "docs" / "metrics.md"


def test_the_page_lists_every_number() -> None:
    """Issue 26 point 5: docs/metrics.md has each metric of the controller with Kafka's own name for it."""
    page = DOCS.read_text()
    rows = [(f"{PREFIX}{one.name}", one.text) for one in GAUGES]
    rows += [(f"{PREFIX}{one.name}_total", one.text) for one in COUNTERS]
    for name, text in rows:
        assert f"| `{name}` | – | {text} |" in page


def test_numbers_of_a_cluster() -> None:
    """One is in office; partitions nobody leads are counted, and elections."""
    cluster = Cluster(1, 2, 3)
    candidate = Candidate(cluster.session, 1, cluster.rules, lambda _messages, _living: None)
    assert _told(candidate)["active_controller_count"] == 0
    cluster.create("t", (2, 3), (3,))
    cluster.kill(3)
    cluster.kill(2)
    cluster.settle()
    candidate.context = cluster.context
    told = _told(candidate)
    assert (told["active_controller_count"], told["active_broker_count"]) == (1, 1)
    assert (told["global_partition_count"], told["offline_partitions_count"]) == (2, 2)


def _told(candidate: Candidate) -> dict[str, float]:
    found = {}
    for family in ControllerMetrics(candidate).collect():
        found[family.name.removeprefix(PREFIX)] = family.samples[0].value
    return found
