"""kafka-transactions and kafka-console-consumer --isolation-level on our broker (issue 28, must show 1)."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from kafka2011.testing import BrokerProcess
from tests.interop.since2011.real_kafka import jars, run_tool
from tests.waiting import PATIENCE_S

TOOL = "org.apache.kafka.tools.TransactionsCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def test_kafkas_tools_see_and_end_transactions(tmp_path: Path) -> None:
    """Described while it is open and known, so it does not hang; the console reads what is committed; abort ends it."""
    jars()
    with BrokerProcess(options={"modern.port": 0}) as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"

        def tool(*words: str) -> str:
            return run_tool(TOOL, "--bootstrap-server", bootstrap, *words, cwd=tmp_path)

        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tool"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("seen", b"committed", partition=0)
        producer.commit_transaction(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("seen", b"open", partition=0)
        producer.flush(PATIENCE_S)
        described = tool("describe", "--transactional-id", "tool")
        hanging = tool("find-hanging", "--max-transaction-timeout", "0", "--broker-id", "0")
        shown = run_tool(
            CONSOLE, "--bootstrap-server", bootstrap, "--topic", "seen", "--from-beginning", "--max-messages", "1",
            "--isolation-level", "read_committed", cwd=tmp_path,
        )  # fmt: skip
        tool("abort", "--topic", "seen", "--partition", "0", "--start-offset", "2")
        producers = tool("describe-producers", "--topic", "seen", "--partition", "0")

    assert "Ongoing" in described
    assert "seen-0" in described
    assert "seen" not in hanging
    assert shown.split() == ["committed"]
    assert producers.splitlines()[1].split()[-1] == "None"
