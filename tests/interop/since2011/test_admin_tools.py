"""Kafka 3.9's own administrators against our broker: AdminClient, kafka-topics, kafka-configs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from tests.interop.since2011.real_kafka import jars, run_java, run_tool

TOPICS, CONFIGS = "org.apache.kafka.tools.TopicCommand", "kafka.admin.ConfigCommand"
STEPS = Path(__file__).with_name("AdminSteps.java")


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    jars()
    with BrokerProcess(options={"modern.port": 0}) as broker:
        yield f"127.0.0.1:{broker.modern_port}"


def test_the_java_admin_client(bootstrap: str, tmp_path: Path) -> None:
    """AdminClient creates, describes, grows, alters, deletes, and understands every refusal (issue 25, must show 3)."""
    said = run_java(str(STEPS), bootstrap, cwd=tmp_path).splitlines()
    assert said == [
        "partitions 2",
        "retention 5000",
        "by id java leader 0",
        "again TopicExistsException",
        "replicas InvalidReplicationFactorException",
        "name InvalidTopicException",
        "dry nothing",
        "shrunk InvalidPartitionsException",
        "policy delete,compact DYNAMIC_TOPIC_CONFIG",
        "retention 604800000 DEFAULT_CONFIG LONG",
        "bad value InvalidConfigurationException",
        "acls SecurityDisabledException",
        "reassignments 0",
        "quotas 0",
        "brokers 1",
        "topics 4",
        "left []",
        "gone UnknownTopicOrPartitionException",
    ]


def test_kafka_topics_and_kafka_configs(bootstrap: str, tmp_path: Path) -> None:
    """The console tools create, describe and alter (issue 25, must show 3)."""

    def tool(name: str, *arguments: str) -> str:
        return run_tool(name, "--bootstrap-server", bootstrap, *arguments, cwd=tmp_path)

    made = tool(TOPICS, "--create", "--topic", "t", "--partitions", "2", "--config", "retention.ms=5000")
    assert "Created topic t." in made
    one = ("--entity-type", "topics", "--entity-name", "t")
    tool(CONFIGS, "--alter", *one, "--add-config", "cleanup.policy=[compact,delete],segment.bytes=1048576")
    told = tool(TOPICS, "--describe", "--topic", "t")
    assert "PartitionCount: 2\tReplicationFactor: 1" in told
    assert "cleanup.policy=compact,delete" in told and "retention.ms=5000" in told
    assert "Topic: t\tPartition: 1\tLeader: 0\tReplicas: 0\tIsr: 0" in told
    told = tool(CONFIGS, "--describe", *one)
    assert "segment.bytes=1048576 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=1048576" in told
