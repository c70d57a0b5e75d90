"""Producer and client over TLS, where the kernel cannot sendfile and the broker copies."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kafka2011.client import BrokerConnection, CannotConnect
from kafka2011.producer import Producer
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set
from tests.waiting import until


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(secret)
    return tmp_path / "cert.pem", tmp_path / "key.pem"


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
