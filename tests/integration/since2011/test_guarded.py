"""A guarded modern port in a cluster: nobody could tell its brokers what to do, so each leads what only it has."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from kafka2011.testing import BrokerProcess


def test_a_broker_with_a_login_and_zookeeper_serves_its_topics(zk_connect: str, tmp_path: Path) -> None:
    """With modern.sasl.users there is no controller, and topics with one replica are written as before (issue 26.1)."""
    users = tmp_path / "users"
    users.write_text("alice:wonder\n")
    users.chmod(0o600)
    options = {"modern.port": 0, "zk.connect": zk_connect, "modern.sasl.users": users, "port.access": "off"}
    with BrokerProcess(tmp_path / "broker", options) as broker:
        settings = {
            "bootstrap.servers": f"127.0.0.1:{broker.modern_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "wonder",
            "message.timeout.ms": 60_000,
        }
        failed: list[object] = []
        producer = Producer(settings)
        producer.produce("guarded", b"v", on_delivery=lambda error, _: failed.append(error) if error else None)
        assert producer.flush(90) == 0
        assert failed == []
