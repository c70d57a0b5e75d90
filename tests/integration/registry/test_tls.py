"""TLS to ZooKeeper: the line is private, and the server's certificate is checked."""

from __future__ import annotations

import datetime
import ipaddress
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from zk_registry.access import Tls
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import Create, Exists
from zk_registry.session import ZooKeeperSession, ZooKeeperUnreachable


def certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    files = directory / f"{name}.pem", directory / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


def carry(outside: socket.socket, context: ssl.SSLContext, inside: tuple[str, int]) -> None:
    """Take TLS off one connection and pass it on, both ways, until either side ends."""
    with (
        suppress(OSError),
        outside,
        context.wrap_socket(outside, server_side=True) as far,
        socket.create_connection(inside) as near,
        selectors.DefaultSelector() as ready,
    ):
        ready.register(far, selectors.EVENT_READ)
        ready.register(near, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                one, other = (far, near) if key.fileobj is far else (near, far)
                data = one.recv(1 << 17)
                while one is far and far.pending():  # decrypted already, so that the selector does not see it
                    data += far.recv(1 << 17)
                if not data:
                    return
                other.sendall(data)


@pytest.fixture
def secure(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An address where the session's ZooKeeper speaks TLS, and the certificate it shows."""
    pem, key = certificate(tmp_path, "zookeeper")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    inside = ("127.0.0.1", zookeeper.servers[0].port)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=carry, args=(connection, context, inside), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", pem
        listening.shutdown(socket.SHUT_RDWR)


def test_a_trusted_server_is_spoken_to_over_tls(secure: tuple[str, Path], zk_connect: str) -> None:
    """With the right authority the session works as without TLS, on the same tree (not in 2011)."""
    connect, pem = secure
    chroot = zk_connect.partition("/")[2]
    with ZooKeeperSession(f"{connect}/{chroot}", tls=Tls(ca=pem)) as session, ZooKeeperSession(zk_connect) as plain:
        session.perform(Create("/over-tls"))
        assert plain.perform(Exists("/over-tls")) is not None


def test_a_stranger_s_certificate_is_refused(secure: tuple[str, Path], tmp_path: Path) -> None:
    """A server whose certificate the authority did not sign is not spoken to (not in 2011)."""
    stranger, _ = certificate(tmp_path, "stranger")
    with pytest.raises(ZooKeeperUnreachable, match=secure[0]):
        ZooKeeperSession(secure[0], tls=Tls(ca=stranger), connect_timeout_s=1).start()
