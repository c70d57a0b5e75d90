"""The load reads a real Kafka 3.9: committed transactions, each record once (issue 25, point 8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from hadoop_etl.cluster import Cluster
from hadoop_etl.load_run import LoadRun
from hadoop_etl.modern import ModernClient
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.warehouse import Warehouse
from kafka2011.events import Journal
from tests.interop.since2011.real_broker import RealBroker
from tests.interop.since2011.real_kafka import jars
from tests.waiting import until

TOPIC = "orders"


@pytest.fixture(autouse=True)
def real_kafka() -> None:
    jars()


def load(bootstrap: str, warehouse: Warehouse) -> int:
    """Load the topic; returns how many rows there are now. (A commit is answered before its markers are written.)"""
    cluster = Cluster({}, {})
    try:
        cluster.add_modern(ModernClient.parse(bootstrap))
        report = LoadRun(warehouse, cluster, InlineRunner(1), Journal(), Options()).run([TOPIC])
    finally:
        cluster.close()
    assert (report["exit_code"], report["dead"]) == (0, 0), report
    return int(warehouse.table(TOPIC).dataset().count_rows())


def test_only_committed_records_are_loaded(zk_connect: str, tmp_path: Path) -> None:
    """Of transactions that commit and abort by turns the committed are loaded; an open one waits for its end."""
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    with RealBroker(f"{zk_connect}/load", tmp_path / "real") as real:
        producer = Producer(
            {"bootstrap.servers": real.bootstrap, "transactional.id": "load", "compression.type": "lz4"}
        )
        producer.init_transactions(60)
        for number in range(6):
            producer.begin_transaction()
            for i in range(50):
                producer.produce(TOPIC, json.dumps({"r": number, "i": i}).encode(), str(i), headers=[("h", b"x")])
            end = producer.abort_transaction if number % 2 else producer.commit_transaction
            end(60)
        until(lambda: load(real.bootstrap, warehouse) == 150, "three transactions are loaded")
        rows = warehouse.table(TOPIC).dataset().to_table().to_pylist()
        assert sorted((row["r"], row["i"]) for row in rows) == [(r, i) for r in (0, 2, 4) for i in range(50)]
        assert all((row["kkey"], row["kheaders"]) == (b"%d" % row["i"], [{"name": "h", "value": b"x"}]) for row in rows)
        producer.begin_transaction()
        producer.produce(TOPIC, b'{"r": 9, "i": 1}')
        assert producer.flush(60) == 0
        assert load(real.bootstrap, warehouse) == 150
        producer.commit_transaction(60)
        until(lambda: load(real.bootstrap, warehouse) == 151, "the last one is loaded")
