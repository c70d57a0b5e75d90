"""TLS and SASL on the modern port, as confluent-kafka and aiokafka speak them. docs/security.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from kafka2011.testing import BrokerProcess
from tests.certificates import issue
from tests.interop.modern.conftest import OPTIONS

PASSWORD = "a password: with, signs="


@pytest.fixture(scope="module", params=["tls", "plaintext"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A broker that asks who is there, with and without TLS; the settings of a client that may come in."""
    directory = tmp_path_factory.mktemp("secured")
    (directory / "users").write_text(f"# who may\nalice:{PASSWORD}\n")
    (directory / "users").chmod(0o600)
    options: dict[str, Any] = OPTIONS | {"modern.sasl.users": directory / "users"}
    client: dict[str, Any] = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": PASSWORD}
    client["security.protocol"] = "SASL_PLAINTEXT"
    if request.param == "tls":
        cert, key = issue("127.0.0.1").write(directory, "broker")
        options |= {"tls.certificate": cert, "tls.key": key, "port.access": "off"}
        client |= {"security.protocol": "SASL_SSL", "ssl.ca.location": str(cert)}
    with BrokerProcess(options=options) as broker:
        yield client | {"bootstrap.servers": f"127.0.0.1:{broker.modern_port}"}


def round_trip(settings: dict[str, Any], topic: str) -> bytes | None:
    """Produce one message and read it back."""
    failed: list[Any] = []
    producer = Producer({**settings, "message.timeout.ms": 60_000})
    producer.produce(topic, b"secret", partition=0, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(60) == 0 and not failed
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    (message,) = consumer.consume(1, 60)
    consumer.close()
    value: bytes | None = message.value()
    return value


def test_the_right_password_comes_in(secured: dict[str, Any], unique: str) -> None:
    """SCRAM-SHA-256 over TLS and without; PLAIN over TLS only (§4.1)."""
    assert round_trip(secured, f"scram-{unique}") == b"secret"
    if secured["security.protocol"] == "SASL_SSL":
        assert round_trip({**secured, "sasl.mechanism": "PLAIN"}, f"plain-{unique}") == b"secret"
    else:
        producer = KafkaProducer(
            bootstrap_servers=secured["bootstrap.servers"], security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256", sasl_plain_username="alice", sasl_plain_password=PASSWORD,
        )  # fmt: skip
        assert producer.send(f"scram-{unique}", b"x").get(60).offset >= 0
        producer.close()


@pytest.mark.parametrize(
    "wrong",
    [{"sasl.password": "guess"}, {"sasl.username": "mallory"}, {"sasl.mechanism": "SCRAM-SHA-512"}],
    ids=["password", "user", "mechanism"],
)
def test_others_stay_outside(secured: dict[str, Any], wrong: dict[str, str]) -> None:
    """A wrong password, an unknown user and a mechanism nobody offers learn nothing (§4.1)."""
    with pytest.raises(KafkaException):
        Producer({**secured, **wrong}).list_topics(timeout=1.5)


@pytest.mark.parametrize("secured", ["plaintext"], indirect=True)
def test_plain_without_tls_is_not_offered(secured: dict[str, Any]) -> None:
    """A password never travels in the clear; neither does a request before the login (§4.1)."""
    for settings in ({**secured, "sasl.mechanism": "PLAIN"}, {"bootstrap.servers": secured["bootstrap.servers"]}):
        with pytest.raises(KafkaException):
            Producer(settings).list_topics(timeout=1.5)
