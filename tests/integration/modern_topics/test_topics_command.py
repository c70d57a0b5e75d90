"""``kafka2011 topics`` on topics of both eras, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kafka2011.testing import BrokerProcess
from since2011.topics.file_store import FILE
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.test_produce import produce
from tests.integration.since2011.wire_client import WireClient
from tests.unit.since2011.server.test_batches import built
from tests.waiting import PATIENCE_S, until


def topics(broker: BrokerProcess, *words: str, code: int = 0) -> tuple[str, str]:
    """What the command prints, and says beside it."""
    command = [sys.executable, "-m", "kafka2011", "topics", *words, "--modern", f"127.0.0.1:{broker.modern_port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_a_topics_life(broker: BrokerProcess) -> None:
    """Created, described, altered, grown with a warning about keys, deleted; the era is said (issue 25, point 7)."""
    _, said = topics(broker, "create", "life", "--partitions", "2", "--config", "retention.ms=5000")
    assert "life is there: a modern topic with 2 partitions" in said
    assert "there already" in topics(broker, "create", "life", code=1)[1]
    assert "there already" in topics(broker, "create", "life", "--if-not-exists")[1]
    _, said = topics(broker, "create", "paper", "--config", "log.format=2011")
    assert "a topic of 2011" in said
    listed = {row["topic"]: row["era"] for row in json.loads(topics(broker, "list", "--json")[0])}
    assert (listed["life"], listed["paper"]) == ("modern", "2011")
    settings = ("--config", "cleanup.policy=compact", "--delete-config", "retention.ms")
    _, said = topics(broker, "alter", "life", "--partitions", "3", *settings)
    assert "records with a key go to other partitions" in said
    rows = json.loads(topics(broker, "describe", "life", "--json")[0])
    assert [row["partition"] for row in rows] == [0, 1, 2]
    assert rows[0]["settings"] == {"cleanup.policy": "compact"}
    assert "only grows" in topics(broker, "alter", "life", "--partitions", "2", code=1)[1]
    assert "is no setting of a topic" in topics(broker, "alter", "life", "--config", "no.such=1", code=1)[1]
    assert "life is gone" in topics(broker, "delete", "life", "--yes")[1]
    assert "there is no topic life" in topics(broker, "describe", "life", code=1)[1]
    assert "is not there" in topics(broker, "delete", "life", "--yes", "--if-exists")[1]


def test_what_was_deleted_meanwhile_goes(tmp_path: Path) -> None:
    """A log whose topic the metadata does not know any more is deleted at the start, and named (D16)."""
    with BrokerProcess(tmp_path, options=OPTIONS) as broker:
        assert broker.modern_port is not None
        with WireClient(broker.modern_port) as client:
            produce(client, "stray", built([b"x"]))
            produce(client, "kept", built([b"x"]))
    file = tmp_path / ".modern" / FILE
    metadata = json.loads(file.read_text())
    del metadata["topics"]["stray"]
    file.write_text(json.dumps(metadata))
    with BrokerProcess(tmp_path, options=OPTIONS) as broker:
        logs = tmp_path / ".modern" / "logs"
        until(lambda: not (logs / "stray-0").exists(), "the stray log is gone")
        assert (logs / "kept-0").exists()
        assert "stray" in broker.output
