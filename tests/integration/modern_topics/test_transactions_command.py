"""``kafka2011 transactions`` and ``log dump`` of their topic (issue 28, build 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from kafka2011.cli.main import kafka2011
from kafka2011.testing import BrokerProcess
from since2011.topics.internal import TRANSACTIONS_TOPIC, partition_of
from since2011.wire.error_codes import ErrorCode
from tests.integration.modern_topics.conftest import OPTIONS
from tests.integration.modern_topics.transactional import Transactional, fetched, read
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker whose leaders believe every producer, as all did before KIP-890: a transaction can hang."""
    with BrokerProcess(options=OPTIONS | {"transaction.partition.verification.enable": "false"}) as process:
        yield process


def told(broker: BrokerProcess, *words: str, as_json: bool = True) -> list[dict[str, object]]:
    """What the command prints."""
    more = ["--json"] if as_json else []
    where = ["--modern", f"127.0.0.1:{broker.modern_port}"]
    ended = CliRunner().invoke(kafka2011, ["transactions", *words, *where, *more])
    assert ended.exit_code == 0, ended.output
    found: list[dict[str, object]] = json.loads(ended.stdout) if as_json and ended.stdout.strip() else []
    return found


def test_a_hanging_transaction_is_found_and_aborted(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """What no coordinator knows is found, with its partition and producer; after the abort readers go on (§8.11)."""
    client.produce(topic, [b"before"])
    honest = Transactional(client, f"honest-{topic}").init()
    honest.add(topic, 0)
    honest.produce(topic, b"a")
    late = Transactional(client, f"late-{topic}").init()
    assert late.produce(topic, b"nobody knows of this").error == ErrorCode.NONE
    (hanging,) = told(broker, "find-hanging", "--minutes", "0")
    (row,) = told(broker, "describe", honest.name)
    told(broker, "abort", topic, "0", "--producer", str(late.producer_id), as_json=False)
    honest.end(commit=True)
    until(honest.is_complete, "the marker is written")

    assert (topic, 0, late.producer_id) == (hanging["topic"], hanging["partition"], hanging["producer_id"])
    assert ("Ongoing", f"{topic}-0") == (row["state"], row["partitions"])
    listed = {each["id"]: each["state"] for each in told(broker, "list")}
    assert listed[honest.name] == "CompleteCommit"
    assert read(client, topic, committed=True) == [b"before", b"a"]
    assert client.end(topic) == fetched(client, topic, committed=True).last_stable
    assert told(broker, "find-hanging", "--minutes", "0") == []


def test_every_change_is_told_in_words(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """``log dump --deep`` of the state topic: the id, its state, producer, epoch and partitions."""
    client.produce(topic, [b"before"])
    producer = Transactional(client, f"dumped-{topic}").init()
    producer.add(topic, 0)
    producer.end(commit=False)
    until(producer.is_complete, "the marker is written")
    directory = broker.log_dir / ".modern" / "logs" / f"{TRANSACTIONS_TOPIC}-{partition_of(producer.name)}"
    ended = CliRunner().invoke(kafka2011, ["log", "dump", str(directory), "--deep", "--json"])
    rows = json.loads(ended.stdout)
    mine = [row["value"].split(",")[0] for row in rows if row["key"] == producer.name]

    assert mine == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]

