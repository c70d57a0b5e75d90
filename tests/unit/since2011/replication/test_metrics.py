"""The numbers of a broker's replicas, and the page that lists them (issue 26.5)."""

from __future__ import annotations

from pathlib import Path

from since2011.replication.metrics import COUNTERS, GAUGES, PREFIX, ReplicaMetrics
from tests.unit.since2011.replication.bench import ME, OTHER, Replicas

DOCS = Path(__file__).resolve().parents[4] / "docs" / "metrics.md"


def test_the_page_lists_every_number() -> None:
    """docs/metrics.md has each metric of replicas with Kafka's own name for it."""
    page = DOCS.read_text()
    rows = [(f"{PREFIX}{one.name}", one.text) for one in GAUGES]
    rows += [(f"{PREFIX}{one.name}_total", one.text) for one in COUNTERS]
    for name, text in rows:
        assert f"| `{name}` | – | {text} |" in page


def test_an_under_replicated_partition_is_counted(tmp_path: Path) -> None:
    """A partition led here with fewer in sync than replicas is under-replicated; a produce that waits is counted."""
    here = Replicas(tmp_path / "logs", min_insync=2)
    here.decide(ME, 0, isr=(ME, OTHER))
    here.append(b"v")
    families = ReplicaMetrics(here.manager).collect()
    told = {family.name.removeprefix(PREFIX): family.samples[0].value for family in families}
    assert told["under_replicated_partitions"] == told["at_min_isr_partition_count"] == 1
    assert told["under_min_isr_partition_count"] == 0
    assert told["leader_count"] == told["partition_count"] == told["waiting_produces"] == 1
    here.close()
