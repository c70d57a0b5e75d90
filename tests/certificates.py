"""Certificates for tests: authorities, brokers and clients, made in memory and written where a test wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def secret(self, how: KeySerializationEncryption | None = None) -> bytes:
        """The key, as PEM."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how or NoEncryption())

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """Write certificate and key; return both files."""
        files = directory / f"{name}.pem", directory / f"{name}.key"
        files[0].write_bytes(self.pem)
        files[1].write_bytes(self.secret())
        files[1].chmod(0o600)
        return files


def issue(
    name: str, issuer: Identity | None = None, *, authority: bool = True, hosts: Sequence[str] = ("127.0.0.1",)
) -> Identity:
    """A certificate for ``hosts`` (addresses or names), signed by ``issuer``, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = [
        x509.IPAddress(ip_address(host)) if host.replace(".", "").isdigit() else x509.DNSName(host) for host in hosts
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key if issuer is None else issuer.key, hashes.SHA256())
    )
    return Identity(made, key)
