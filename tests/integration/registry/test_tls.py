"""TLS to ZooKeeper: the line is private, and the server's certificate is checked."""

from __future__ import annotations

import json
import selectors
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from kafka2011.config import load_config
from kafka2011.errors import ConfigError
from kafka2011.settings import CLIENT_SETTINGS
from kafka2011.testing import BrokerProcess
from tests.certificates import Identity, issue
from zk_registry.access import Access, Tls, access_of
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import Create, Exists, Get, NoAuth, Set
from zk_registry.session import ZooKeeperSession, ZooKeeperUnreachable


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


@contextmanager
def guarded(inside: tuple[str, int], identity: Identity, directory: Path) -> Iterator[int]:
    """A port where ``inside`` is reached over TLS, by somebody who shows ``identity``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*identity.write(directory, "shown"))
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=carry, args=(connection, context, inside), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def secure(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An address where the session's ZooKeeper speaks TLS, and the certificate it shows."""
    identity = issue("zookeeper")
    with guarded(("127.0.0.1", zookeeper.servers[0].port), identity, tmp_path) as port:
        yield f"127.0.0.1:{port}", identity.write(tmp_path, "zookeeper")[0]


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Callable[[Identity], tuple[int, list[bytes]]]]:
    """Stand in for ZooKeeper with any certificate; return the port and what clients say there once TLS stands."""
    open_ports: list[socket.socket] = []

    def listen(identity: Identity) -> tuple[int, list[bytes]]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*identity.write(tmp_path, "impostor"))
        listening = socket.create_server(("127.0.0.1", 0))
        open_ports.append(listening)
        heard: list[bytes] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as line:
                        heard.append(line.recv(1 << 16))

        threading.Thread(target=serve, daemon=True).start()
        return int(listening.getsockname()[1]), heard

    yield listen
    for port in open_ports:
        with suppress(OSError):
            port.shutdown(socket.SHUT_RDWR)
        port.close()


def test_a_trusted_server_is_spoken_to_over_tls(secure: tuple[str, Path], zk_connect: str) -> None:
    """With the right authority the session works as without TLS, on the same tree (not in 2011)."""
    connect, pem = secure
    chroot = zk_connect.partition("/")[2]
    access = Access(tls=Tls(ca=pem))
    with ZooKeeperSession(f"{connect}/{chroot}", access=access) as session, ZooKeeperSession(zk_connect) as plain:
        session.perform(Create("/over-tls"))
        assert plain.perform(Exists("/over-tls")) is not None


def test_a_stranger_s_certificate_is_refused(secure: tuple[str, Path], tmp_path: Path) -> None:
    """A server whose certificate the authority did not sign is not spoken to (not in 2011)."""
    stranger, _ = issue("stranger").write(tmp_path, "stranger")
    with pytest.raises(ZooKeeperUnreachable, match=rf"no TLS with ZooKeeper at {secure[0]}: .*self-signed"):
        ZooKeeperSession(secure[0], access=Access(tls=Tls(ca=stranger)), connect_timeout_s=1).start()


def test_a_certificate_for_another_name_is_refused(
    listener: Callable[[Identity], tuple[int, list[bytes]]], tmp_path: Path
) -> None:
    """Issue 20 B1: a certificate the right authority gave to another host is not handed the credential."""
    root = issue("root")
    port, heard = listener(issue("other", root, authority=False, hosts=["other.example"]))
    tls = Tls(ca=root.write(tmp_path, "root")[0])
    with pytest.raises(ZooKeeperUnreachable, match=r"IP address mismatch.*nothing was said to it"):
        ZooKeeperSession(f"127.0.0.1:{port}", access=Access("broker:secret", tls), connect_timeout_s=1).start()
    assert not any(heard)


def test_authorities_of_the_system_are_not_trusted_beside_ours(
    listener: Callable[[Identity], tuple[int, list[bytes]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 20 B1: with zk.tls.ca a certificate for the right name from a system authority opens nothing."""
    system, ours = issue("system"), issue("ours")
    monkeypatch.setenv("SSL_CERT_FILE", str(system.write(tmp_path, "system")[0]))
    port, heard = listener(issue("impostor", system, authority=False))
    tls = Tls(ca=ours.write(tmp_path, "ours")[0])
    with pytest.raises(ZooKeeperUnreachable, match="unable to get local issuer certificate"):
        ZooKeeperSession(f"127.0.0.1:{port}", access=Access("broker:secret", tls), connect_timeout_s=1).start()
    assert not any(heard)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    """A wrong path is an error at once, not a ZooKeeper that does not answer (not in 2011)."""
    with pytest.raises(ConfigError, match=r"nowhere\.pem: No such file"):
        ZooKeeperSession("127.0.0.1:1", access=Access(tls=Tls(ca=tmp_path / "nowhere.pem")))


def test_in_the_clear_it_is_said_that_tls_is_spoken(secure: tuple[str, Path]) -> None:
    """Issue 20 B4: who did not declare TLS is told that it is missing, not that nobody answers."""
    with pytest.raises(ZooKeeperUnreachable, match=r"speaks TLS and was spoken to in the clear.*client\.zk\.tls\.ca"):
        ZooKeeperSession(secure[0], connect_timeout_s=1).start()


def test_every_client_takes_the_declaration(secure: tuple[str, Path], zk_connect: str, tmp_path: Path) -> None:
    """Issue 20 B4: commands, the producer's router, the Algorithm 1 consumer and the load, by ``client.zk.*`` alone."""
    connect, pem = secure
    through_tls = f"{connect}/{zk_connect.partition('/')[2]}"
    secret = tmp_path / "credential"
    secret.touch(mode=0o600)
    secret.write_text("reader:secret\n")
    declared = ("--client", f"client.zk.tls.ca={pem}", "--client", f"client.zk.credential.file={secret}")

    def done(*words: str, given: str = "") -> str:
        command = [sys.executable, "-m", "kafka2011", *declared, *words, "-z", through_tls]
        ran = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    with BrokerProcess(options={"zk.connect": zk_connect, "log.flush.interval": 1}) as broker:
        assert str(broker.port) in done("brokers")
        done("produce", "views", given='{"page": "/home"}\n')
        assert done("consume", "views", "-g", "readers", "-n", "1") == '{"page": "/home"}\n'
        planned = json.loads(done("etl", "plan", "--json", "-w", str(tmp_path / "warehouse")))
        assert [topic["topic"] for topic in planned["topics"]] == ["views"]
    with ZooKeeperSession(zk_connect) as anyone:
        assert int(anyone.perform(Get("/consumers/readers/offsets/views/0-0")).value) > 0
        with pytest.raises(NoAuth):
            anyone.perform(Set("/consumers/readers/offsets/views/0-0", b"0"))


def test_a_broker_s_session_is_the_broker_s_own(
    secure: tuple[str, Path], zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 20 B4: a broker goes by zk.*; what the clients around it declare does not reach it."""
    monkeypatch.setenv("KAFKA2011_CLIENT_ZK_TLS_CA", str(secure[1]))
    with BrokerProcess(options={"zk.connect": zk_connect}) as broker:
        assert broker.port


def test_a_certificate_and_no_tls_is_a_contradiction(tmp_path: Path) -> None:
    """Issue 20 B1: zk.tls.ca alone turns TLS on; with zk.tls=false it is refused, and never means "in the clear"."""
    settings = CLIENT_SETTINGS
    ca = {"KAFKA2011_CLIENT_ZK_TLS_CA": str(tmp_path / "ca.pem")}
    assert access_of(load_config(None, ca, settings=settings), "client.").tls == Tls(ca=tmp_path / "ca.pem")
    with pytest.raises(ConfigError, match=r"client\.zk\.tls=false, but client\.zk\.tls\.ca"):
        access_of(load_config(None, ca | {"KAFKA2011_CLIENT_ZK_TLS": "false"}, settings=settings), "client.")
