"""Producer and client over TLS, where the kernel cannot sendfile and the broker copies."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.errors import CannotConnect
from kafka2011.producer import Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set
from tests.certificates import issue
from tests.waiting import until


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    return issue("127.0.0.1").write(tmp_path, "broker")


def test_a_round_trip_over_tls(certificate: tuple[Path, Path]) -> None:
    """Messages arrive and come back over TLS; a client that does not trust the certificate never connects."""
    cert, key = certificate
    trusting = ssl.create_default_context(cafile=str(cert))
    payloads = [b"%d" % i for i in range(5000)]
    with BrokerProcess(options={"log.flush.interval": 1, "tls.certificate": cert, "tls.key": key}) as broker:
        with Producer(broker.address, tls=trusting) as producer:
            producer.send("clicks", payloads)
        with BrokerConnection(broker.host, broker.port, tls=trusting) as connection:
            until(lambda: len(decode_set(connection.fetch("clicks", 0, 0))) == 5000, "everything is stored")
            assert [m.payload for m in decode_set(connection.fetch("clicks", 0, 0))] == payloads

        stranger = BrokerConnection(broker.host, broker.port, tls=ssl.create_default_context())
        with pytest.raises(CannotConnect, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.offsets("clicks", 0)
