"""TLS as authorities hand it out: a chain of certificates, several client authorities, and files that are wrong."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding

from kafka2011.broker.tls import tls_options
from kafka2011.client import BrokerConnection
from kafka2011.config import load_config
from kafka2011.errors import CannotConnect, ConfigError, ConnectionFailed
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from tests.certificates import Identity, issue
from tests.waiting import until


@dataclass(frozen=True)
class Files:
    """An authority, one below it, and a broker's certificate from that one."""

    directory: Path
    root: Identity
    middle: Identity
    leaf: Identity

    def write(self, name: str, *parts: bytes) -> Path:
        path = self.directory / name
        path.write_bytes(b"".join(parts))
        path.chmod(0o600)
        return path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    root = issue("root")
    middle = issue("middle", root)
    return Files(tmp_path, root, middle, issue("broker", middle, authority=False))


def trusting(files: Files, authority: Identity) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.write("trusted.pem", authority.pem)))


def test_the_whole_chain_is_sent(files: Files) -> None:
    """A client that knows only the root trusts a broker whose certificate an intermediate signed (not in 2011)."""
    chain = files.write("chain.pem", files.leaf.pem, files.middle.pem)
    alone = files.write("alone.pem", files.leaf.pem)
    key = files.write("key.pem", files.leaf.secret())
    context = trusting(files, files.root)
    data = encode_set([b"hello"])
    with BrokerProcess(options={"log.flush.interval": 1, "tls.certificate": chain, "tls.key": key}) as broker:
        with BrokerConnection(broker.host, broker.port, tls=context) as connection:
            connection.produce("t", 0, data)
            until(lambda: connection.fetch("t", 0, 0) == data, "the message is there")
        with socket.create_connection((broker.host, broker.port)) as plain:
            unverified = ssl.create_default_context()
            unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
            with unverified.wrap_socket(plain) as line:
                assert line.getpeercert(binary_form=True) == files.leaf.certificate.public_bytes(Encoding.DER)
    with BrokerProcess(options={"tls.certificate": alone, "tls.key": key}) as broker:
        stranger = BrokerConnection(broker.host, broker.port, tls=context)
        with pytest.raises(CannotConnect, match="unable to get local issuer certificate"):
            stranger.offsets("t", 0)


def test_clients_of_every_named_authority_come_in(files: Files) -> None:
    """tls.client.ca may hold several authorities: their clients come in, others and the nameless do not."""
    other, stranger = issue("other"), issue("stranger")
    options = {
        "tls.certificate": files.write("chain.pem", files.leaf.pem, files.middle.pem),
        "tls.key": files.write("key.pem", files.leaf.secret()),
        "tls.client.ca": files.write("clients.pem", files.root.pem, other.pem),
    }
    client_chain = files.middle.pem
    with BrokerProcess(options=options) as broker:
        for issuer, chain, welcome in ((files.middle, client_chain, True), (other, b"", True), (stranger, b"", False)):
            context = trusting(files, files.root)
            client = issue("client", issuer, authority=False)
            context.load_cert_chain(files.write("client.pem", client.pem, chain, client.secret()))
            with BrokerConnection(broker.host, broker.port, tls=context, connect_timeout_s=1.0) as connection:
                if welcome:
                    assert connection.offsets("t", 0) == [0]
                    assert "certificate:CN=client" in broker.state()["principals"]
                else:
                    with pytest.raises(ConnectionFailed):
                        connection.offsets("t", 0)
        nameless = BrokerConnection(broker.host, broker.port, tls=trusting(files, files.root), connect_timeout_s=1.0)
        with pytest.raises(ConnectionFailed):
            nameless.offsets("t", 0)


def test_files_that_are_wrong_are_named(files: Files) -> None:
    """A missing file, a key of another certificate, one with a pass phrase, no certificate: each is one sentence."""
    chain = files.write("chain.pem", files.leaf.pem, files.middle.pem)
    key = files.write("key.pem", files.leaf.secret())
    wrong_order = files.write("order.pem", files.middle.pem, files.leaf.pem)
    locked = files.write("locked.pem", files.leaf.secret(BestAvailableEncryption(b"secret")))
    broken = files.write("broken.pem", files.leaf.pem.replace(b"M", b"!", 5))
    nothing = files.write("nothing.pem", b"hello")
    for certificate, private, clients, sentence in (
        (files.directory / "no.pem", key, None, r"tls.certificate .*no.pem cannot be read: No such file"),
        (nothing, key, None, r"tls.certificate .*nothing.pem holds no PEM certificate"),
        (broken, key, None, r"tls.certificate .*broken.pem holds a certificate that cannot be read"),
        (wrong_order, key, None, r"tls.key .* is not the key of the first certificate .* own certificate comes first"),
        (chain, locked, None, r"tls.key .*locked.pem holds no PEM private key without a pass phrase"),
        (chain, chain, None, r"tls.key .*chain.pem holds no PEM private key"),
        (chain, key, nothing, r"tls.client.ca .*nothing.pem holds no PEM certificate"),
    ):
        flags = {"tls.certificate": str(certificate), "tls.key": str(private)}
        with pytest.raises(ConfigError, match=sentence):
            tls_options(load_config(flags=flags | ({} if clients is None else {"tls.client.ca": str(clients)})))
